// Ranges of addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cudabpf::replay {

struct Range {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  bool has(const Range& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const Range&) const = default;
};

// What both have; of size 0 if that is nothing.
constexpr Range common(const Range& a, const Range& b) {
  Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : Range{};
}

// In order; those that overlap or touch become one. Lists of ranges below are such.
std::vector<Range> merged(std::vector<Range> ranges);
// Outwards, to multiples of `unit`.
std::vector<Range> rounded(const std::vector<Range>& ranges, std::uint64_t unit);
// What is left without this one.
std::vector<Range> without(const std::vector<Range>& ranges, const Range& gone);
// Without any of those.
std::vector<Range> without_all(std::vector<Range> ranges, const std::vector<Range>& gone);
// The parts of the ranges that lie in this one.
std::vector<Range> parts_in(const std::vector<Range>& ranges, const Range& window);
// Those with less than `gap` bytes between them become one, if no block ends in between. What is in
// no block is left out.
std::vector<Range> joined(const std::vector<Range>& ranges, const std::vector<Range>& blocks,
                          std::uint64_t gap);
bool have(const std::vector<Range>& ranges, const Range& wanted);
std::uint64_t size_of(const std::vector<Range>& ranges);

}  // namespace cudabpf::replay
