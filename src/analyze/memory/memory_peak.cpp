#include "analyze/memory/memory_peak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>
#include <utility>

namespace cudabpf::analyze {

namespace {

bool larger(const LiveMemory::Block& a, const LiveMemory::Block& b) {
  return std::tuple(a.size, b.number) > std::tuple(b.size, a.number);
}

}  // namespace

void MemoryPeak::allocated(const LiveMemory::Block& block) {
  held_ += block.size;
  if (held_ <= bytes_) return;
  bytes_ = held_;
  ts_ = block.since;
  number_ = block.number;
  if (at_peak_.count) at_peak_ = {};
}

void MemoryPeak::ended(const LiveMemory::Block& block, Name holder) {
  held_ -= block.size;
  if (was_live(block)) at_peak_.add(block, holder);
}

void MemoryPeak::begin_anew(std::uint64_t ts, std::uint64_t last) {
  bytes_ = held_;
  ts_ = ts;
  number_ = last;
  at_peak_ = {};
}

void MemoryPeak::Blocks::add(const LiveMemory::Block& block, Name holder) {
  count++;
  files.of(holder.id, {.name = holder}).add(block.size);
  auto size_class = static_cast<unsigned>(std::bit_width(block.size));
  constexpr unsigned SIZE_CLASS_BITS = 8;
  std::uint64_t key = std::uint64_t{block.function} << SIZE_CLASS_BITS | size_class;
  Group& group = groups.of(key, {{block.function}, size_class});
  group.bytes += block.size;
  group.blocks++;
  keep_largest(largest, block, LARGEST);
}

MemoryPeak::Holders MemoryPeak::Blocks::holders() && {
  auto more = [](const Group& a, const Group& b) {
    return std::tuple(b.bytes, a.function.id, a.size_class) <
           std::tuple(a.bytes, b.function.id, b.size_class);
  };
  return {groups.take(more), files.take(std::less()), std::move(largest), count};
}

void MemoryPeak::keep_largest(std::vector<LiveMemory::Block>& largest,
                              const LiveMemory::Block& block, std::size_t most) {
  if (largest.size() == most && !larger(block, largest.back())) return;
  if (largest.size() == most) largest.pop_back();
  largest.insert(std::upper_bound(largest.begin(), largest.end(), block, larger), block);
}

std::string size_class_name(unsigned size_class) {
  if (!size_class) return "0 B";
  constexpr std::string_view UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto bytes = [&](unsigned power) { return std::uint64_t{1} << power % 10; };
  unsigned low = (size_class - 1) / 10, high = size_class / 10;
  return low == high
             ? fmt::format("{} to {} {}", bytes(size_class - 1), bytes(size_class), UNITS[high])
             : fmt::format("{} {} to {} {}", bytes(size_class - 1), UNITS[low], bytes(size_class),
                           UNITS[high]);
}

}  // namespace cudabpf::analyze
