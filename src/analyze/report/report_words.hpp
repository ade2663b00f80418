// What many events of a report's timeline say alike, each kept once: what kind of event it is, and
// its details as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyze/timeline/timeline_bars.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct EventKind {
  Name name, what;  // what: the kernel, the graph, the control command or the class
  Name error;
  Name ending;  // how it ended, where that is not known: "unfinished", …
  Category category = Category::other;
  bool failed = false, launch = false, ioctl = false, timed = false;
  bool is_kernel = false;  // `what` is the name of a kernel

  // A bit each, as web/src/data/timeline.ts has them.
  unsigned flags() const {
    return unsigned{failed} | unsigned{launch} << 1U | unsigned{ioctl} << 2U |
           unsigned{timed} << 3U | unsigned{is_kernel} << 4U;
  }
  auto as_tuple() const {
    return std::tuple(name.id, what.id, error.id, ending.id, category, flags());
  }
  bool operator==(const EventKind& other) const { return as_tuple() == other.as_tuple(); }
};

struct EventKindHash {
  std::size_t operator()(const EventKind& kind) const {
    std::uint64_t looks = static_cast<std::uint64_t>(kind.category) << 5 | kind.flags();
    return hash_of(std::uint64_t{kind.name.id} << 32 | kind.what.id,
                   std::uint64_t{kind.ending.id} << 32 | kind.error.id, looks);
  }
};

class EventKinds {
 public:
  // A kind is found by its number; 0 stands for those beyond the most that are kept apart.
  std::uint32_t add(const EventKind& kind) {
    if (!kinds_.empty() && kind == last_) return last_number_;
    last_ = kind;
    auto known = numbers_.find(kind);
    if (known != numbers_.end()) return last_number_ = known->second;
    if (kinds_.empty()) kinds_.emplace_back();
    if (kinds_.size() == MOST) return last_number_ = 0;
    last_number_ = static_cast<std::uint32_t>(kinds_.size());
    kinds_.push_back(kind);
    numbers_.emplace(kind, last_number_);
    return last_number_;
  }
  const std::vector<EventKind>& all() const { return kinds_; }

 private:
  static constexpr std::size_t MOST = 1 << 16;

  std::vector<EventKind> kinds_;
  HashMap<EventKind, std::uint32_t, EventKindHash> numbers_;
  EventKind last_;
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
  static constexpr std::size_t MOST = 1 << 17, MOST_BYTES = std::size_t{12} << 20;

  HashMap<std::string, std::uint32_t> numbers_;
  std::vector<std::string_view> texts_;  // of `numbers_`
  std::string text_;                     // that is being put together
  std::size_t bytes_ = 0;
  bool full_ = false;
};

// The first bytes of a text, whole characters, and printable.
std::string short_text(std::string_view text, std::size_t most);

}  // namespace cudabpf::analyze
