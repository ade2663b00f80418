#include "merge/ahead.hpp"

#include <algorithm>
#include <cstdlib>

#include "merge/drift.hpp"

namespace cudabpf::merge {

namespace {

// By how much the first clock is ahead at a moment, at least and at most.
struct Limits {
  static constexpr std::int64_t NONE = std::int64_t{1} << 62;  // beyond what any two meetings say
  std::int64_t at = 0;                                         // on the second clock
  std::int64_t least = -NONE, most = NONE;
};

// A rank can have ended only once each other one had begun: this limits the clocks when it ended.
// And each other one can have ended only once it had begun.
std::vector<Limits> limits_of(const std::vector<Meeting>& first,
                              const std::vector<Meeting>& second) {
  std::vector<Limits> all;
  for (const Meeting& one : second) {
    auto other = std::ranges::lower_bound(first, one.key, {}, &Meeting::key);
    if (other == first.end() || other->key != one.key) continue;
    auto begin = static_cast<std::int64_t>(one.begin), end = static_cast<std::int64_t>(one.end);
    Limits begun{.at = begin}, ended{.at = end};
    for (; other != first.end() && other->key == one.key; ++other) {
      begun.most = std::min(begun.most, static_cast<std::int64_t>(other->end) - begin);
      ended.least = std::max(ended.least, static_cast<std::int64_t>(other->begin) - end);
    }
    all.push_back(begun);
    all.push_back(ended);
  }
  return all;
}

// Both clocks may run wrong.
std::int64_t drift_between(const Limits& a, const Limits& b) {
  return static_cast<std::int64_t>(2 *
                                   drift_over(static_cast<std::uint64_t>(std::abs(a.at - b.at))));
}

void tighten(Limits& one, const Limits& neighbour) {
  std::int64_t drift = drift_between(one, neighbour);
  one.least = std::max(one.least, neighbour.least - drift);
  one.most = std::min(one.most, neighbour.most + drift);
}

}  // namespace

std::optional<Ahead> ahead_of(const std::vector<Meeting>& first, const std::vector<Meeting>& second,
                              std::pair<std::uint64_t, std::uint64_t> events) {
  std::vector<Limits> all = limits_of(first, second);
  if (all.empty()) return std::nullopt;
  // What is so at the first event and at the last follows from their neighbours.
  for (std::uint64_t at : {events.first, events.second})
    all.push_back({.at = static_cast<std::int64_t>(at)});
  std::ranges::sort(all, {}, &Limits::at);
  for (std::size_t i = 1; i < all.size(); i++) tighten(all[i], all[i - 1]);
  for (std::size_t i = all.size() - 1; i > 0; i--) tighten(all[i - 1], all[i]);
  std::int64_t least = all.front().least, most = all.front().most;
  for (std::size_t i = 1; i < all.size(); i++) {
    const Limits &one = all[i], &before = all[i - 1];
    if (one.least > one.most) return std::nullopt;
    // Half-way between two moments, clocks may have run wrong from both.
    std::int64_t drift = drift_between(one, before) / 2 + 1;
    least = std::min(least, std::min(one.least, before.least) - drift);
    most = std::max(most, std::max(one.most, before.most) + drift);
  }
  std::int64_t half = (most - least) / 2;
  return Ahead{least + half, static_cast<std::uint64_t>(half) + 1};
}

}  // namespace cudabpf::merge
