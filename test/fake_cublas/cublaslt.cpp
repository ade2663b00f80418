#include <cstdlib>
#include <cstring>

#include "common.hpp"

// The descriptors, in one of several layouts: FAKE_CUBLASLT_LAYOUT says in which. Nothing but the
// library itself can know where what is.
namespace {

enum : uint32_t { OK = 0, ALLOC_FAILED = 3, INVALID = 7 };
constexpr size_t MATRIX = 64, PRODUCT = 256;
constexpr unsigned TWICE = 4;  // what a layout of this number has twice, and so in no place

struct Places {
  unsigned type, rows, columns, ld, batch, mode;      // of a matrix
  unsigned compute, scale, transa, transb, epilogue;  // of a product
};
constexpr Places LAYOUTS[] = {{0, 8, 16, 24, 32, 36, 8, 4, 20, 24, 36},
                              {20, 0, 8, 24, 16, 32, 8, 16, 0, 4, 12},
                              {32, 24, 16, 8, 4, 0, 32, 36, 16, 24, 40},
                              {0, 48, 56, 24, 32, 36, 8, 4, 20, 24, 36},  // beyond what is recorded
                              {0, 8, 16, 24, 32, 36, 8, 4, 20, 24, 36}};

unsigned layout() {
  const char* number = std::getenv("FAKE_CUBLASLT_LAYOUT");
  return number ? static_cast<unsigned>(std::atoi(number)) : 0;
}
const Places& places() { return LAYOUTS[layout()]; }

template <typename Value>
void put(void* descriptor, unsigned at, Value value) {
  std::memcpy(static_cast<char*>(descriptor) + at, &value, sizeof(value));
}
template <typename Value>
Value get(const void* descriptor, unsigned at) {
  Value value{};
  std::memcpy(&value, static_cast<const char*>(descriptor) + at, sizeof(value));
  return value;
}

uint32_t set(void* descriptor, unsigned at, const void* value, size_t size) {
  if (!value || size != sizeof(int32_t)) return INVALID;
  put(descriptor, at, get<int32_t>(value, 0));
  return OK;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED uint32_t cublasLtMatrixLayoutInit_internal(void* at, size_t size, int32_t type,
                                                    uint64_t rows, uint64_t columns, int64_t ld) {
  if (size < MATRIX) return ALLOC_FAILED;
  std::memset(at, 0, MATRIX);
  put(at, places().type, type);
  put(at, places().rows, rows);
  put(at, places().columns, columns);
  put(at, places().ld, ld);
  put(at, places().batch, int32_t{1});
  if (layout() == TWICE) put(at, 48, rows);
  return OK;
}

EXPORTED uint32_t cublasLtMatrixLayoutSetAttribute(void* at, int32_t attribute, const void* value,
                                                   size_t size) {
  enum { BATCH = 5, MODE = 8 };
  if (attribute != BATCH && attribute != MODE) return INVALID;
  return set(at, attribute == BATCH ? places().batch : places().mode, value, size);
}

EXPORTED uint32_t cublasLtMatmulDescInit_internal(void* at, size_t size, int32_t compute,
                                                  int32_t scale) {
  if (size < PRODUCT) return ALLOC_FAILED;
  std::memset(at, 0, PRODUCT);
  put(at, places().compute, compute);
  put(at, places().scale, scale);
  put(at, places().epilogue, int32_t{1});
  return OK;
}

EXPORTED uint32_t cublasLtMatmulDescSetAttribute(void* at, int32_t attribute, const void* value,
                                                 size_t size) {
  enum { TRANSA = 3, TRANSB = 4, EPILOGUE = 7 };
  switch (attribute) {
    case TRANSA:
      return set(at, places().transa, value, size);
    case TRANSB:
      return set(at, places().transb, value, size);
    case EPILOGUE:
      return set(at, places().epilogue, value, size);
    default:
      return INVALID;
  }
}

// For the simulated cuBLAS: a product of two untransposed matrices of half-precision numbers.
EXPORTED void fake_cublaslt_describe(uint64_t m, uint64_t n, uint64_t k, void* product,
                                     void* matrices) {
  constexpr int32_t HALF = 2, SUM_HALF = 64;
  auto* matrix = static_cast<char*>(matrices);
  cublasLtMatmulDescInit_internal(product, PRODUCT, SUM_HALF, HALF);
  cublasLtMatrixLayoutInit_internal(matrix, MATRIX, HALF, m, k, static_cast<int64_t>(m));
  cublasLtMatrixLayoutInit_internal(matrix + MATRIX, MATRIX, HALF, k, n, static_cast<int64_t>(k));
  cublasLtMatrixLayoutInit_internal(matrix + 2 * MATRIX, MATRIX, HALF, m, n,
                                    static_cast<int64_t>(m));
}

namespace fake_cublas {

uint32_t does(std::string_view, const Words& words) {
  const auto* result = reinterpret_cast<const void*>(words.at("Ddesc"));
  return launch(get<uint64_t>(result, places().rows), get<uint64_t>(result, places().columns),
                static_cast<uint64_t>(get<int32_t>(result, places().batch)), words.at("stream"));
}

}  // namespace fake_cublas
