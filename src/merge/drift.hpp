// By how much a machine's clock may run wrong although it is kept right.
#pragma once

#include <cstdint>

namespace cudabpf::merge {

// 500 ppm, as the kernel assumes when it lets the maximum error grow.
inline std::uint64_t drift_over(std::uint64_t ns) {
  constexpr std::uint64_t DIVISOR = 2000;
  return ns / DIVISOR;
}

}  // namespace cudabpf::merge
