#include "util/hash.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <cstring>

namespace cudabpf {

// The kernel gives each program that it starts 16 random bytes; asking for more would be a system
// call, which sandboxed processes may not make.
const std::array<std::uint64_t, 2>& hash_seed() {
  static const auto SEED = [] {
    std::array<std::uint64_t, 2> seed{};
    auto at = getauxval(AT_RANDOM);
    if (const auto* random = reinterpret_cast<const void*>(at))  // NOLINT: it is an address
      std::memcpy(seed.data(), random, sizeof(seed));
    return seed;
  }();
  return SEED;
}

std::uint64_t hash_of(std::string_view text) {
  Hasher hasher;
  hasher.add(text.size());
  for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
    hasher.add(word);
  }
  return hasher.result();
}

}  // namespace cudabpf
