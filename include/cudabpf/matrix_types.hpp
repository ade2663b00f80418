// What the elements of matrices are, and how their products are added up, by NVIDIA's numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace cudabpf {

// cudaDataType, as far as functions' names say it.
enum class CudaType : std::int32_t {
  unknown = -1,
  R_32F = 0,
  R_64F = 1,
  R_16F = 2,
  C_32F = 4,
  C_64F = 5,
  R_16BF = 14,
};

// cublasComputeType_t, as far as it is looked at.
enum class ComputeType : std::int32_t {
  unknown = -1,
  F16 = 64,
  F32 = 68,
  F64 = 70,
  F32_FAST_TF32 = 77,
};

struct MatrixType {
  std::string_view name;  // "bfloat16"; empty: not known
  std::uint8_t bits = 0;  // of an element, both of its parts
  bool is_complex = false;
};
MatrixType matrix_type(CudaType type);
// The same by its name in a trace.
MatrixType matrix_type(std::string_view name);

// "32f_fast_tf32"; empty: not known.
std::string_view compute_name(ComputeType type);
// "gelu_bias"; empty: not known, or none.
std::string_view epilogue_name(std::uint32_t epilogue);
// "n", "t", "c"; empty: not known.
std::string_view blas_op_name(std::uint32_t op);

}  // namespace cudabpf
