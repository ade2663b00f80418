#include "replay/ranges.hpp"

namespace cudabpf::replay {

namespace {

// The first that ends behind the address.
auto first_behind(const std::vector<Range>& ranges, std::uint64_t address) {
  return std::partition_point(ranges.begin(), ranges.end(),
                              [=](const Range& range) { return range.end <= address; });
}

}  // namespace

std::vector<Range> merged(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> all;
  for (const Range& range : ranges) {
    if (!range.size()) continue;
    if (!all.empty() && range.begin <= all.back().end)
      all.back().end = std::max(all.back().end, range.end);
    else
      all.push_back(range);
  }
  return all;
}

std::vector<Range> rounded(const std::vector<Range>& ranges, std::uint64_t unit) {
  std::vector<Range> all;
  all.reserve(ranges.size());
  for (const Range& range : ranges)
    all.push_back({range.begin / unit * unit, (range.end + unit - 1) / unit * unit});
  return merged(std::move(all));
}

std::vector<Range> without(const std::vector<Range>& ranges, const Range& gone) {
  std::vector<Range> left;
  for (const Range& range : ranges) {
    Range both = common(range, gone);
    if (!both.size()) both = {range.end, range.end};
    for (const Range& part : {Range{range.begin, both.begin}, Range{both.end, range.end}})
      if (part.size()) left.push_back(part);
  }
  return left;
}

std::vector<Range> without_all(std::vector<Range> ranges, const std::vector<Range>& gone) {
  for (const Range& one : gone) ranges = without(ranges, one);
  return ranges;
}

std::vector<Range> parts_in(const std::vector<Range>& ranges, const Range& window) {
  std::vector<Range> parts;
  for (auto at = first_behind(ranges, window.begin); at != ranges.end(); ++at) {
    Range part = common(*at, window);
    if (!part.size()) break;
    parts.push_back(part);
  }
  return parts;
}

std::vector<Range> joined(const std::vector<Range>& ranges, const std::vector<Range>& blocks,
                          std::uint64_t gap) {
  std::vector<Range> all;
  for (const Range& block : blocks) {
    std::size_t first = all.size();
    for (const Range& part : parts_in(ranges, block)) {
      if (all.size() > first && part.begin - all.back().end < gap)
        all.back().end = part.end;
      else
        all.push_back(part);
    }
  }
  return all;
}

bool have(const std::vector<Range>& ranges, const Range& wanted) {
  auto at = first_behind(ranges, wanted.begin);
  return at != ranges.end() && at->has(wanted);
}

std::uint64_t size_of(const std::vector<Range>& ranges) {
  std::uint64_t size = 0;
  for (const Range& range : ranges) size += range.size();
  return size;
}

}  // namespace cudabpf::replay
