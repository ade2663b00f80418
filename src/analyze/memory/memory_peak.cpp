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

template <typename Row>
void count(std::vector<Row>& rows, std::unordered_map<std::uint64_t, std::size_t>& at,
           std::uint64_t key, const Row& fresh, const LiveMemory::Block& block) {
  auto [place, is_new] = at.try_emplace(key, rows.size());
  if (is_new) rows.push_back(fresh);
  rows[place->second].bytes += block.size;
  rows[place->second].blocks++;
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

void MemoryPeak::ended(const LiveMemory::Block& block, Name holder) {
  held_ -= block.size;
  if (was_live(block)) add(ended_since_, block, holder);
}

void MemoryPeak::begin_anew(std::uint64_t ts, std::uint64_t last) {
  bytes_ = held_;
  ts_ = ts;
  number_ = last;
  ended_since_ = {};
}

void MemoryPeak::add(Holders& to, const LiveMemory::Block& block, Name holder) {
  to.blocks++;
  count(to.asked, to.asked_at, holder.id, {holder}, block);
  auto size_class = static_cast<unsigned>(std::bit_width(block.size));
  constexpr unsigned SIZE_CLASS_BITS = 8;
  count(to.groups, to.group_at, std::uint64_t{block.function} << SIZE_CLASS_BITS | size_class,
        {{block.function}, size_class}, block);
  keep_largest(to.largest, block, LARGEST);
}

void MemoryPeak::keep_largest(std::vector<LiveMemory::Block>& largest,
                              const LiveMemory::Block& block, std::size_t most) {
  if (largest.size() == most && !larger(block, largest.back())) return;
  if (largest.size() == most) largest.pop_back();
  largest.insert(std::upper_bound(largest.begin(), largest.end(), block, larger), block);
}

void MemoryPeak::sort(Holders& holders) {
  holders.group_at.clear();
  holders.asked_at.clear();
  std::sort(holders.asked.begin(), holders.asked.end(), [](const Asked& a, const Asked& b) {
    return std::tuple(b.bytes, a.holder.id) < std::tuple(a.bytes, b.holder.id);
  });
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
