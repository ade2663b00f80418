#include "cudabpf/matrix_types.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace cudabpf {

namespace {

// cudaDataType, in order. Elements have the names that they have in NCCL's lines.
constexpr MatrixType MATRIX_TYPES[] = {{"float32", 32, false},    {"float64", 64, false},
                                       {"float16", 16, false},    {"int8", 8, false},
                                       {"complex64", 64, true},   {"complex128", 128, true},
                                       {"complex32", 32, true},   {"complex_int8", 16, true},
                                       {"uint8", 8, false},       {"complex_uint8", 16, true},
                                       {"int32", 32, false},      {"complex_int32", 64, true},
                                       {"uint32", 32, false},     {"complex_uint32", 64, true},
                                       {"bfloat16", 16, false},   {"complex_bfloat16", 32, true},
                                       {"int4", 4, false},        {"complex_int4", 8, true},
                                       {"uint4", 4, false},       {"complex_uint4", 8, true},
                                       {"int16", 16, false},      {"complex_int16", 32, true},
                                       {"uint16", 16, false},     {"complex_uint16", 32, true},
                                       {"int64", 64, false},      {"complex_int64", 128, true},
                                       {"uint64", 64, false},     {"complex_uint64", 128, true},
                                       {"float8_e4m3", 8, false}, {"float8_e5m2", 8, false},
                                       {"float8_e8m0", 8, false}, {"float6_e2m3", 6, false},
                                       {"float6_e3m2", 6, false}, {"float4_e2m1", 4, false}};

struct NumberedName {
  std::uint32_t number;
  std::string_view name;
};
constexpr NumberedName COMPUTE_TYPES[] = {{64, "16f"},
                                          {65, "16f_pedantic"},
                                          {68, "32f"},
                                          {69, "32f_pedantic"},
                                          {70, "64f"},
                                          {71, "64f_pedantic"},
                                          {72, "32i"},
                                          {73, "32i_pedantic"},
                                          {74, "32f_fast_16f"},
                                          {75, "32f_fast_16bf"},
                                          {77, "32f_fast_tf32"},
                                          {78, "32f_emulated_16bfx9"},
                                          {79, "64f_emulated_fixedpoint"}};
// cublasLtEpilogue_t
constexpr NumberedName EPILOGUES[] = {
    {2, "relu"},          {130, "relu_aux"},      {4, "bias"},
    {6, "relu_bias"},     {134, "relu_aux_bias"}, {136, "drelu"},
    {152, "drelu_bgrad"}, {32, "gelu"},           {160, "gelu_aux"},
    {36, "gelu_bias"},    {164, "gelu_aux_bias"}, {192, "dgelu"},
    {208, "dgelu_bgrad"}, {256, "bgrada"},        {512, "bgradb"}};

template <typename List>
std::string_view name_of_number(const List& list, std::uint32_t number) {
  const auto* at = std::ranges::find(list, number, &NumberedName::number);
  return at == std::end(list) ? std::string_view() : at->name;
}

}  // namespace

MatrixType matrix_type(CudaType type) {
  auto number = static_cast<std::uint32_t>(type);
  return number < std::size(MATRIX_TYPES) ? MATRIX_TYPES[number] : MatrixType();
}

MatrixType matrix_type(std::string_view name) {
  const auto* at = std::ranges::find(MATRIX_TYPES, name, &MatrixType::name);
  return at == std::end(MATRIX_TYPES) ? MatrixType() : *at;
}

std::string_view compute_name(ComputeType type) {
  return name_of_number(COMPUTE_TYPES, static_cast<std::uint32_t>(type));
}

std::string_view epilogue_name(std::uint32_t epilogue) {
  return name_of_number(EPILOGUES, epilogue);
}

std::string_view blas_op_name(std::uint32_t op) {
  constexpr std::string_view NAMES[] = {"n", "t", "c", "c"};
  return op < std::size(NAMES) ? NAMES[op] : std::string_view();
}

}  // namespace cudabpf
