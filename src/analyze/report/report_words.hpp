// What many events of a report's timeline have in common, kept once: what kind of event it is, and
// its details as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/lanes/lane_events.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct LaneEventHash {
  std::size_t operator()(const LaneEvent& kind) const {
    std::uint64_t looks = static_cast<std::uint64_t>(kind.category) << 5 | kind.flags();
    return hash_of(std::uint64_t{kind.name.id} << 32 | kind.what.id,
                   std::uint64_t{kind.ending.id} << 32 | kind.error.id, looks);
  }
};

class EventKinds {
 public:
  // A kind is found by its number; 0 stands for those beyond the most that are kept apart.
  std::uint32_t add(const LaneEvent& kind) {
    if (!kinds_.empty() && kind == last_) return last_number_;
    last_ = kind;
    auto known = numbers_.find(kind);
    if (known != numbers_.end()) return last_number_ = known->second;
    if (kinds_.empty()) kinds_.emplace_back();
    if (kinds_.size() == MAX) return last_number_ = 0;
    last_number_ = static_cast<std::uint32_t>(kinds_.size());
    kinds_.push_back(kind);
    numbers_.emplace(kind, last_number_);
    return last_number_;
  }
  const std::vector<LaneEvent>& all() const { return kinds_; }

 private:
  static constexpr std::size_t MAX = 1 << 16;

  std::vector<LaneEvent> kinds_;
  HashMap<LaneEvent, std::uint32_t, LaneEventHash> numbers_;
  LaneEvent last_;
  std::uint32_t last_number_ = 0;
};

// "size\x1f4096\x1eptr\x1f0x7f…": names and values, as the page takes them apart.
class EventDetails {
 public:
  // No details; and more different ones than are kept.
  static constexpr std::uint32_t NONE = 0, NOT_KEPT = 1;

  EventDetails() : texts_{"", ""} {}

  std::uint32_t of(const Line& line, const Names& names);
  const std::vector<std::string_view>& all() const { return texts_; }
  bool is_full() const { return full_; }

 private:
  static constexpr std::size_t MAX = 1 << 17, MAX_BYTES = std::size_t{12} << 20;

  HashMap<std::string, std::uint32_t> numbers_;
  std::vector<std::string_view> texts_;  // of `numbers_`
  std::string text_;                     // that is being put together
  std::size_t bytes_ = 0;
  bool full_ = false;
};

// The first bytes of a text, whole characters, and printable.
std::string short_text(std::string_view text, std::size_t most);

}  // namespace cudabpf::analyze
