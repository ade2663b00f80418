#include "merge/ahead.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "merge/drift.hpp"

namespace cudabpf::merge {

namespace {

// What a moment says: by how much the first clock is ahead, at least and at most.
struct Limits {
  std::int64_t at = 0;  // on the second clock
  std::int64_t least = std::numeric_limits<std::int64_t>::min(),
               most = std::numeric_limits<std::int64_t>::max();
};

std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

// Several ranks of a machine may have met: each of them says something.
std::vector<Limits> limits_of(const std::vector<Meeting>& first,
                              const std::vector<Meeting>& second) {
  std::vector<Limits> all;
  auto a = first.begin();
  for (auto b = second.begin(); b != second.end();) {
    while (a != first.end() && a->key < b->key) ++a;
    const Meeting::Key key = b->key;
    Limits limits;
    limits.at = static_cast<std::int64_t>(b->begin);
    for (; b != second.end() && b->key == key; ++b)
      for (auto other = a; other != first.end() && other->key == key; ++other) {
        limits.least = std::max(limits.least, difference(other->begin, b->end));
        limits.most = std::min(limits.most, difference(other->end, b->begin));
      }
    if (limits.most != std::numeric_limits<std::int64_t>::max()) all.push_back(limits);
  }
  std::ranges::sort(all, {}, &Limits::at);
  return all;
}

// Both clocks may run wrong, so each moment also limits what is so at its neighbours.
std::int64_t between(std::int64_t at, std::int64_t other) {
  return static_cast<std::int64_t>(2 *
                                   drift_over(static_cast<std::uint64_t>(std::abs(at - other))));
}

void tighten(Limits& one, const Limits& neighbour) {
  std::int64_t drift = between(one.at, neighbour.at);
  one.least = std::max(one.least, neighbour.least - drift);
  one.most = std::min(one.most, neighbour.most + drift);
}

}  // namespace

std::optional<Ahead> ahead_of(const std::vector<Meeting>& first, const std::vector<Meeting>& second,
                              std::pair<std::uint64_t, std::uint64_t> events) {
  std::vector<Limits> all = limits_of(first, second);
  if (all.empty()) return std::nullopt;
  for (std::size_t i = 1; i < all.size(); i++) tighten(all[i], all[i - 1]);
  for (std::size_t i = all.size() - 1; i > 0; i--) tighten(all[i - 1], all[i]);
  std::int64_t least = all.front().least, most = all.front().most;
  auto widen = [&](const Limits& a, std::int64_t drift) {
    least = std::min(least, a.least - drift);
    most = std::max(most, a.most + drift);
  };
  for (std::size_t i = 0; i < all.size(); i++) {
    if (all[i].least > all[i].most) return std::nullopt;
    // In the middle between two moments; before the first; after the last.
    if (i) widen(all[i], between(all[i].at, all[i - 1].at) / 2 + 1);
    if (i) widen(all[i - 1], between(all[i].at, all[i - 1].at) / 2 + 1);
  }
  auto [begin, end] = events;
  if (auto at = static_cast<std::int64_t>(begin); at < all.front().at)
    widen(all.front(), between(all.front().at, at));
  if (auto at = static_cast<std::int64_t>(end); at > all.back().at)
    widen(all.back(), between(at, all.back().at));
  std::int64_t half = (most - least) / 2;
  return Ahead{least + half, static_cast<std::uint64_t>(half) + 1};
}

}  // namespace cudabpf::merge
