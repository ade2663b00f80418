#include "analyze/memory/memory_peak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "util/console/terminal.hpp"

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
  if (ended_since_.blocks) ended_since_ = {};
}

void MemoryPeak::ended(const LiveMemory::Block& block) {
  held_ -= block.size;
  if (was_live(block)) add(ended_since_, block);
}

void MemoryPeak::begin_anew(std::uint64_t ts, std::uint64_t last) {
  bytes_ = held_;
  ts_ = ts;
  number_ = last;
  ended_since_ = {};
}

void MemoryPeak::add(Holders& to, const LiveMemory::Block& block) {
  to.blocks++;
  auto size_class = static_cast<unsigned>(std::bit_width(block.size));
  auto group = std::find_if(to.groups.begin(), to.groups.end(), [&](const Group& known) {
    return known.function.id == block.function && known.size_class == size_class;
  });
  if (group == to.groups.end()) {
    if (to.groups.size() < MAX_GROUPS) to.groups.push_back({{block.function}, size_class});
    group = to.groups.end() - 1;
  }
  group->bytes += block.size;
  group->blocks++;
  if (to.largest.size() == LARGEST && !larger(block, to.largest.back())) return;
  if (to.largest.size() == LARGEST) to.largest.pop_back();
  to.largest.insert(std::upper_bound(to.largest.begin(), to.largest.end(), block, larger), block);
}

void MemoryPeak::sort(Holders& holders) {
  std::sort(holders.groups.begin(), holders.groups.end(), [](const Group& a, const Group& b) {
    return std::tuple(b.bytes, a.function.id, a.size_class) <
           std::tuple(a.bytes, b.function.id, b.size_class);
  });
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
