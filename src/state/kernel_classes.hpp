// What a kernel does, judging by its name. The known names come from the libraries that most
// programs get their kernels from; any other is `other`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cudabpf {

enum class KernelClass : std::uint8_t {
  copy_set,         // moves or fills: copies, casts, transposes, gathers, scatters
  matrix_multiply,  // also by a vector; convolutions, which are computed as one
  attention,
  normalisation,  // layer, batch, RMS norm; softmax
  elementwise,    // each element by itself: activations, rotary embeddings, random numbers
  reduction,      // many to few, and scans
  collective,     // between GPUs
  other,
};
constexpr std::size_t KERNEL_CLASSES = 8;

std::string_view to_string(KernelClass kernel_class);  // "matrix multiply"
KernelClass class_of_kernel(std::string_view name);    // demangled, or the symbol itself

}  // namespace cudabpf
