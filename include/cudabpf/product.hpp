// A product of matrices that a call of cuBLAS or cuBLASLt asks for: C = A · B, of m x k and k x n.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cudabpf/cuda_api.hpp"
#include "cudabpf/descriptors.h"

namespace cudabpf {

// Why it is not known what is multiplied.
enum class ShapeUnknown : std::uint8_t {
  none,
  not_read,      // arguments or descriptors were not read
  descriptors,   // it is not known what lies where in cuBLASLt's
  grouped,       // products of several shapes, which arrays list
  inconsistent,  // what was read does not fit together
};

constexpr std::string_view to_string(ShapeUnknown why) {
  constexpr std::string_view NAMES[] = {"", "not_read", "descriptors", "grouped", "inconsistent"};
  return NAMES[static_cast<std::size_t>(why)];
}

struct Product {
  ShapeUnknown unknown = ShapeUnknown::none;
  std::uint64_t m = 0, n = 0, k = 0;
  std::uint64_t batch = 1;                           // products of this shape
  std::array<std::uint32_t, 2> transposed{};         // cublasOperation_t of A and B
  std::array<std::optional<std::uint64_t>, 3> ld{};  // leading dimensions of A, B and C
  std::array<CudaType, 3> types = {CudaType::unknown, CudaType::unknown, CudaType::unknown};
  ComputeType compute = ComputeType::unknown;
  std::uint32_t epilogue = 0;  // cublasLtEpilogue_t; 0: none is said
  bool operator==(const Product&) const = default;
};

// Where cuBLASLt's descriptors have what: enum cb_lt_field.
using LtLayout = std::array<abi::cb_lt_place, abi::CB_LT_FIELDS>;

// What the call multiplies. `layout`: of the process's cuBLASLt; null: not known.
Product describe_product(const Function& function, std::span<const std::uint64_t> words,
                         std::span<const std::byte> structure, const LtLayout* layout);

// Whether this argument of a product is told by its Product.
bool is_told_by_product(std::string_view argument);

}  // namespace cudabpf
