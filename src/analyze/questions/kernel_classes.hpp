// What a kernel does, judging by its name. The known names come from the libraries that most
// programs get their kernels from; any other is `other`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "trace/read/names.hpp"

namespace cudabpf::analyze {

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

// Classifies each name once, however often its kernel comes.
class ClassesByName {
 public:
  explicit ClassesByName(const Names& names) : names_(names) {}

  KernelClass of(Name kernel) {
    auto [known, is_new] = classes_.try_emplace(kernel.id);
    if (is_new) known->second = class_of_kernel(names_.text(kernel));
    return known->second;
  }

 private:
  const Names& names_;
  std::unordered_map<std::uint32_t, KernelClass> classes_;  // by the name's number
};

}  // namespace cudabpf::analyze
