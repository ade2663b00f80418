// What answers count a function's calls as, and lack where they are not recorded.
#pragma once

#include <string_view>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

// "launches", "copies", "waits", "allocations", "frees"; empty: none of these.
constexpr std::string_view counted_as(const Function& function) {
  Type type = function.type;
  Op op = function.op;
  if ((type == Type::kernel || type == Type::graph) && op == Op::launch) return "launches";
  if (type == Type::transfer) return "copies";
  if (type == Type::sync) return "waits";
  if (type == Type::memory && op == Op::alloc) return "allocations";
  if (type == Type::memory && op == Op::free) return "frees";
  return {};
}

}  // namespace cudabpf
