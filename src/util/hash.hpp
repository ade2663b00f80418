// Mixes numbers into one hash: each input bit changes about half of the result's bits.
#pragma once

#include <cstdint>

namespace cudabpf {

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

}  // namespace cudabpf
