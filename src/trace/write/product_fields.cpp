#include "trace/write/product_fields.hpp"

#include "util/text/json.hpp"

namespace cudabpf {

using json::put;
using json::put_number;

namespace {

char* put_name_or_number(char* at, std::string_view name, std::uint32_t number) {
  return name.empty() ? put_number(at, number) : put(at, name);
}

char* put_types(char* at, const Product& product) {
  at = put(at, ",\"types\":\"");
  for (std::size_t i = 0; i < product.types.size(); i++) {
    if (i) *at++ = ',';
    at = put_name_or_number(at, matrix_type(product.types[i]).name,
                            static_cast<std::uint32_t>(product.types[i]));
  }
  *at++ = '"';
  return at;
}

char* put_shape(char* at, const Product& product) {
  auto number = [&](std::string_view key, std::uint64_t value) {
    at = put_number(put(at, key), value);
  };
  number(",\"m\":", product.m);
  number(",\"n\":", product.n);
  number(",\"k\":", product.k);
  number(",\"batch\":", product.batch);
  at = put(at, ",\"trans\":\"");
  for (std::uint32_t op : product.transposed) at = put_name_or_number(at, blas_op_name(op), op);
  *at++ = '"';
  constexpr std::string_view LEADING[] = {",\"lda\":", ",\"ldb\":", ",\"ldc\":"};
  for (std::size_t i = 0; i < product.ld.size(); i++)
    if (product.ld[i]) number(LEADING[i], *product.ld[i]);
  return at;
}

}  // namespace

char* put_product(char* at, const Product& product) {
  if (product.unknown == ShapeUnknown::none) {
    at = put_shape(at, product);
  } else {
    at = put(at, ",\"shape_unknown\":\"");
    at = put(at, to_string(product.unknown));
    *at++ = '"';
  }
  if (product.types[0] != CudaType::unknown) at = put_types(at, product);
  if (product.compute != ComputeType::unknown) {
    at = put(at, ",\"compute\":\"");
    at = put_name_or_number(at, compute_name(product.compute),
                            static_cast<std::uint32_t>(product.compute));
    *at++ = '"';
  }
  constexpr std::uint32_t NO_EPILOGUE = 1;
  if (product.epilogue > NO_EPILOGUE) {
    at = put(at, ",\"epilogue\":\"");
    at = put_name_or_number(at, epilogue_name(product.epilogue), product.epilogue);
    *at++ = '"';
  }
  return at;
}

}  // namespace cudabpf
