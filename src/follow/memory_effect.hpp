// What the calls of a function do to memory, whether a Call or a line of a trace tells of one.
#pragma once

#include <optional>
#include <string_view>

#include "cudabpf/cuda_api.hpp"
#include "follow/live_memory.hpp"

namespace cudabpf {

// The two functions that are known by their names alone.
inline constexpr std::string_view IMPORTS_MEMORY = "cuMemImportFromShareableHandle";
inline constexpr std::string_view RETAINS_MEMORY = "cuMemRetainAllocationHandle";

// `of` has a type and an op: a Function, or a line. Most calls are not about memory, so which kind
// it is about is asked last.
template <typename Of, typename IsVmm>
std::optional<MemoryCall::Does> memory_effect(const Of& of, bool imports, bool retains,
                                              IsVmm&& is_vmm) {
  using Does = MemoryCall::Does;
  if (imports) return Does::import;
  if (of.type != Type::memory) return {};
  if (of.op == Op::alloc) return Does::alloc;
  if (of.op == Op::free) return Does::free;
  if (retains) return Does::retain;
  if (!is_vmm()) return {};
  if (of.op == Op::map) return Does::map;
  if (of.op == Op::unmap) return Does::unmap;
  return {};
}

}  // namespace cudabpf
