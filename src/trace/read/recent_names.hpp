// Names that lines had lately, by their raw text: one that lines repeat is found without being
// unescaped or wholly hashed. One thread may look names up while another adds some.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "trace/read/names.hpp"

namespace cudabpf::analyze {

class RecentNames {
 public:
  // Eight bytes behind the text must be readable.
  Name find(std::string_view raw, const Names& names) const {
    if (raw.empty()) return {};
    std::uint64_t hash = hash_of_some(raw);
    for (const std::atomic<std::uint64_t>& way : sets_[place(hash)]) {
      std::uint64_t found = way.load(std::memory_order_acquire);
      Name name{static_cast<std::uint32_t>(found)};
      if (found >> 32 == tag(hash) && names.text(name) == raw) return name;
    }
    return {};
  }
  // One thread only.
  void add(std::string_view raw, Name name) {
    std::uint64_t hash = hash_of_some(raw);
    Set& ways = sets_[place(hash)];
    auto* way = std::ranges::find_if(ways, [](const auto& one) { return one == 0; });
    if (way == ways.end()) way = &ways[next_++ % WAYS];
    way->store(tag(hash) << 32 | name.id, std::memory_order_release);
  }

 private:
  // Where two frequent names took turns in a place, each of their lines, and thousands that had
  // been read ahead, would be parsed again.
  static constexpr std::size_t WAYS = 4, SETS = 512;
  using Set = std::array<std::atomic<std::uint64_t>, WAYS>;  // the tag, then the name's number

  // Takes the beginning, the middle and the end, since many names differ in only one of them.
  static std::uint64_t hash_of_some(std::string_view raw) {
    std::uint64_t first = 0, middle = 0, last = 0;
    std::memcpy(&first, raw.data(), sizeof(first));
    std::memcpy(&middle, raw.data() + raw.size() / 2, sizeof(middle));
    std::memcpy(&last, raw.data() + raw.size() - std::min(raw.size(), sizeof(last)), sizeof(last));
    return first * 0x9e3779b97f4a7c15 + middle * 0xff51afd7ed558ccd + last * 0xc4ceb9fe1a85ec53 +
           raw.size() * 0xc2b2ae3d27d4eb4f;
  }
  static std::uint64_t tag(std::uint64_t hash) { return hash >> 16 & 0xffffffff; }
  static std::size_t place(std::uint64_t hash) { return (hash >> 48) % SETS; }

  std::array<Set, SETS> sets_{};
  std::size_t next_ = 0;
};

}  // namespace cudabpf::analyze
