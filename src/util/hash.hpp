// The one hash of all tables whose keys come from traced programs, libraries and traces. Each
// process has its own seed, so that keys cannot be chosen to collide, which would turn a table into
// a list: SipHash-1-3, as in other programs' tables. So output must never depend on the order in
// which such a table is walked.
//
// Keys that cudabpf counts up itself (of names, of processes) do not need this, nor do pointers.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

namespace cudabpf {

// Random, and the same from the process's start to its end.
const std::array<std::uint64_t, 2>& hash_seed();

// Takes words one after the other.
class Hasher {
 public:
  Hasher() : Hasher(hash_seed()) {}
  explicit Hasher(const std::array<std::uint64_t, 2>& seed)
      : a_(seed[0] ^ 0x736f6d6570736575),
        b_(seed[1] ^ 0x646f72616e646f6d),
        c_(seed[0] ^ 0x6c7967656e657261),
        d_(seed[1] ^ 0x7465646279746573) {}

  void add(std::uint64_t word) {
    d_ ^= word;
    turn();
    a_ ^= word;
  }
  std::uint64_t result() {
    c_ ^= 0xff;
    for (int i = 0; i < 3; i++) turn();
    return a_ ^ b_ ^ c_ ^ d_;
  }

 private:
  void turn() {
    a_ += b_;
    b_ = std::rotl(b_, 13) ^ a_;
    a_ = std::rotl(a_, 32);
    c_ += d_;
    d_ = std::rotl(d_, 16) ^ c_;
    a_ += d_;
    d_ = std::rotl(d_, 21) ^ a_;
    c_ += b_;
    b_ = std::rotl(b_, 17) ^ c_;
    c_ = std::rotl(c_, 32);
  }

  std::uint64_t a_, b_, c_, d_;
};

template <typename Number>
concept Hashable = std::integral<Number> || std::is_enum_v<Number>;

// How many numbers there are is part of a table's kind of keys, and so need not be in the hash.
template <Hashable... Numbers>
std::uint64_t hash_of(Numbers... numbers) {
  Hasher hasher;
  (hasher.add(static_cast<std::uint64_t>(numbers)), ...);
  return hasher.result();
}
std::uint64_t hash_of(std::string_view text);

// Maps and sets of such keys. (Those of the standard library have a number be its own hash.)
struct SeededHash {
  template <Hashable Number>
  std::size_t operator()(Number number) const {
    return hash_of(number);
  }
  std::size_t operator()(std::string_view text) const { return hash_of(text); }
};
template <typename Key, typename Value, typename Hash = SeededHash>
using HashMap = std::unordered_map<Key, Value, Hash>;
template <typename Key, typename Hash = SeededHash>
using HashSet = std::unordered_set<Key, Hash>;

}  // namespace cudabpf
