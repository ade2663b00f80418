#include "cudabpf/product.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cudabpf/describe.hpp"

namespace cudabpf {

namespace {

using DescriptorBytes = std::span<const std::byte>;
using ArgumentWords = std::span<const std::uint64_t>;

constexpr std::uint64_t MAX_SIZE = std::numeric_limits<std::int64_t>::max();

// What the call was given for arguments, by their names; MAX_SIZE + 1: nothing that makes sense.
class GivenArguments {
 public:
  GivenArguments(const Function& function, ArgumentWords words)
      : function_(function), words_(words) {}

  std::optional<std::uint64_t> operator[](std::string_view name) const {
    for (const Argument& argument : function_.arguments) {
      if (argument.name != name || argument.word < 0) continue;
      auto place = static_cast<std::size_t>(int{argument.word});
      if (place >= words_.size()) return std::nullopt;
      std::uint64_t value = value_of(argument.role, words_[place]);
      bool is_int = argument.role == Role::i32;
      return is_int && value > std::numeric_limits<std::int32_t>::max() ? MAX_SIZE + 1 : value;
    }
    return std::nullopt;
  }

 private:
  const Function& function_;
  ArgumentWords words_;
};

bool is_size(std::uint64_t value) { return value <= MAX_SIZE; }

CudaType cuda_type_of(std::optional<std::uint64_t> given, CudaType otherwise) {
  return given ? static_cast<CudaType>(*given) : otherwise;
}

// y = A x: A has m rows as it is stored, not as it is multiplied.
void set_vector_shape(const GivenArguments& given, Product& product) {
  auto rows = given["m"].value_or(0), columns = given["n"].value_or(0);
  auto trans = static_cast<std::uint32_t>(given["trans"].value_or(0));
  product.transposed = {trans, 0};
  product.m = trans ? columns : rows;
  product.n = 1;
  product.k = trans ? rows : columns;
}

Product product_of_arguments(const Function& function, ArgumentWords words) {
  Product product;
  if (function.op == Op::gemm_grouped) product.unknown = ShapeUnknown::grouped;
  const GivenArguments given(function, words);
  const ElementTypes& said = function.elements;
  product.types = {cuda_type_of(given["Atype"], said.operands),
                   cuda_type_of(given["Btype"], said.operands),
                   cuda_type_of(given["Ctype"], said.result)};
  product.compute = said.compute;
  if (auto compute = given["computeType"]) product.compute = static_cast<ComputeType>(*compute);
  if (product.unknown != ShapeUnknown::none) return product;
  if (!given["m"] || !given["n"]) {
    product.unknown = ShapeUnknown::not_read;
    return product;
  }
  if (function.op == Op::gemv) {
    set_vector_shape(given, product);
  } else {
    product.m = *given["m"];
    product.n = *given["n"];
    product.k = given["k"].value_or(0);
    product.transposed = {static_cast<std::uint32_t>(given["transa"].value_or(0)),
                          static_cast<std::uint32_t>(given["transb"].value_or(0))};
  }
  product.batch = given["batchCount"].value_or(1);
  product.ld = {given["lda"], given["ldb"], given["ldc"]};
  for (std::uint64_t size : {product.m, product.n, product.k, product.batch})
    if (!is_size(size)) product.unknown = ShapeUnknown::inconsistent;
  return product;
}

// A descriptor as the call had it, and where it has what.
struct GivenDescriptor {
  DescriptorBytes bytes;
  const LtLayout& layout;

  // Nothing: the library did not show where that is, or it lies beyond what is recorded.
  std::optional<std::uint64_t> operator[](abi::cb_lt_field field) const {
    const abi::cb_lt_place& place = layout[field];
    std::uint64_t value = 0;
    if (!place.size || place.size > sizeof(value) ||
        place.at + std::size_t{place.size} > bytes.size())
      return std::nullopt;
    std::memcpy(&value, bytes.data() + place.at, place.size);
    return value;
  }
};

struct GivenMatrix {
  std::uint64_t rows = 0, columns = 0, batch = 1;
};

// False: it is not known what it is.
bool read_matrix(const GivenDescriptor& descriptor, GivenMatrix& matrix) {
  auto rows = descriptor[abi::CB_LT_ROWS], columns = descriptor[abi::CB_LT_COLUMNS],
       batch = descriptor[abi::CB_LT_BATCH];
  if (!rows || !columns || !batch || !descriptor[abi::CB_LT_TYPE]) return false;
  matrix = {*rows, *columns, *batch};
  return true;
}

std::vector<DescriptorBytes> descriptors_of(const Function& function, DescriptorBytes structure) {
  std::vector<DescriptorBytes> found;
  for (const Argument& argument : function.arguments) {
    if (argument.role != Role::in_struct) continue;
    std::size_t at = struct_words_before(function, argument) * sizeof(std::uint64_t);
    std::size_t size = struct_words(argument.layout) * sizeof(std::uint64_t);
    if (at + size <= structure.size()) found.push_back(structure.subspan(at, size));
  }
  return found;
}

// Do these multiply to what the last one takes?
bool fit_together(const std::array<GivenMatrix, 3>& matrices, const Product& product) {
  auto [a, b, c] = matrices;
  if (product.transposed[0]) std::swap(a.rows, a.columns);
  if (product.transposed[1]) std::swap(b.rows, b.columns);
  bool alike = a.rows == c.rows && a.columns == b.rows && b.columns == c.columns;
  for (const GivenMatrix& one : matrices)
    alike = alike && is_size(one.rows) && is_size(one.columns) && one.batch && is_size(one.batch);
  return alike;
}

Product product_of_descriptors(const Function& function, DescriptorBytes structure,
                               const LtLayout* layout) {
  Product product;
  auto unknown = [&](ShapeUnknown why) {
    product.unknown = why;
    return product;
  };
  std::vector<DescriptorBytes> all = descriptors_of(function, structure);
  if (all.size() != 4) return unknown(ShapeUnknown::not_read);
  if (!layout) return unknown(ShapeUnknown::descriptors);
  GivenDescriptor how{all[0], *layout};
  auto transa = how[abi::CB_LT_TRANSA], transb = how[abi::CB_LT_TRANSB];
  std::array<GivenMatrix, 3> matrices;
  for (std::size_t i = 0; i < matrices.size(); i++) {
    GivenDescriptor matrix{all[i + 1], *layout};
    constexpr std::uint64_t POINTERS = 1;  // a batch whose matrices an array lists
    if (matrix[abi::CB_LT_BATCH_MODE].value_or(0) > POINTERS) return unknown(ShapeUnknown::grouped);
    if (!read_matrix(matrix, matrices[i])) return unknown(ShapeUnknown::descriptors);
    product.types[i] = cuda_type_of(matrix[abi::CB_LT_TYPE], CudaType::unknown);
    product.ld[i] = matrix[abi::CB_LT_LD];
  }
  if (!transa || !transb) return unknown(ShapeUnknown::descriptors);
  product.transposed = {static_cast<std::uint32_t>(*transa), static_cast<std::uint32_t>(*transb)};
  if (!fit_together(matrices, product)) return unknown(ShapeUnknown::inconsistent);
  product.m = matrices[2].rows;
  product.n = matrices[2].columns;
  product.k = *transa ? matrices[0].rows : matrices[0].columns;
  product.batch = matrices[2].batch;
  if (auto compute = how[abi::CB_LT_COMPUTE]) product.compute = static_cast<ComputeType>(*compute);
  product.epilogue = static_cast<std::uint32_t>(how[abi::CB_LT_EPILOGUE].value_or(0));
  return product;
}

}  // namespace

Product describe_product(const Function& function, ArgumentWords words, DescriptorBytes structure,
                         const LtLayout* layout) {
  return function.op == Op::matmul ? product_of_descriptors(function, structure, layout)
                                   : product_of_arguments(function, words);
}

bool is_told_by_product(std::string_view argument) {
  constexpr std::string_view TOLD[] = {"m",      "n",      "k",     "batchCount", "trans",
                                       "transa", "transb", "lda",   "ldb",        "ldc",
                                       "Atype",  "Btype",  "Ctype", "computeType"};
  return std::ranges::find(TOLD, argument) != std::end(TOLD);
}

}  // namespace cudabpf
