// The classes of kernels whose names are kept.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "state/kernel_classes.hpp"
#include "trace/read/names.hpp"

namespace cudabpf::analyze {

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
