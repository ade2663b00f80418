#include "collect/bpf/tallies.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "util/console/log.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t BATCH = 512, MAX_BATCH = 1 << 20;

}  // namespace

void Tallies::Ends::add(const abi::cb_tally& sum) {
  ended += sum.ended;
  // While calls come and go on several CPUs, an end may be seen whose beginning is not.
  if (sum.calls > sum.ended) under_way += sum.calls - sum.ended;
}

Tallies::Tallies(int map, const FunctionNumbers& numbers)
    : map_(map),
      numbers_(numbers),
      cpus_(static_cast<std::size_t>(std::max(libbpf_num_possible_cpus(), 1))),
      keys_(BATCH),
      values_(BATCH * cpus_) {}

abi::cb_tally Tallies::sum_of(std::size_t at) const {
  abi::cb_tally sum{};
  for (std::size_t cpu = 0; cpu < cpus_; cpu++) {
    const abi::cb_tally& one = values_[at * cpus_ + cpu];
    sum.calls += one.calls;
    sum.ended += one.ended;
    sum.time_ns += one.time_ns;
    sum.failed += one.failed;
    sum.bytes += one.bytes;
    if (one.failed_at <= sum.failed_at) continue;
    sum.failed_at = one.failed_at;
    sum.error = one.error;
  }
  return sum;
}

std::vector<Tallies::Entry> Tallies::read() {
  std::vector<Entry> entries;
  std::uint32_t position = 0, next = 0;
  for (bool first = true;;) {
    auto count = static_cast<std::uint32_t>(keys_.size());
    int error = bpf_map_lookup_batch(map_, first ? nullptr : &position, &next, keys_.data(),
                                     values_.data(), &count, nullptr);
    if (error == -ENOSPC && keys_.size() < MAX_BATCH) {  // entries with one hash are read at once
      keys_.resize(keys_.size() * 2);
      values_.resize(keys_.size() * cpus_);
      continue;
    }
    if (error && error != -ENOENT) {
      if (!failed_) log::warning("reading the counts of calls: {}", std::strerror(-error));
      failed_ = true;
      return entries;
    }
    for (std::size_t i = 0; i < count; i++) entries.push_back({keys_[i], sum_of(i)});
    if (error) return entries;
    first = false;
    position = next;
  }
}

// Removes it with its last figures, since nothing adds to it any more.
bool Tallies::remove(Entry& entry) {
  if (bpf_map_lookup_elem(map_, &entry.key, values_.data()) != 0) return false;
  entry.sum = sum_of(0);
  return bpf_map_delete_elem(map_, &entry.key) == 0;
}

// A process adds to its entries only while it is marked as alive, and its entries are made only
// after that mark. So if the mark is gone after the entries were listed, they are final. A later
// process with the same pid has other entries.
std::vector<Tally> Tallies::take(const IsAlive& is_alive) {
  std::vector<Entry> entries = read();
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.key.pid, a.key.began, a.key.function) <
           std::tie(b.key.pid, b.key.began, b.key.function);
  });
  std::map<std::uint32_t, std::uint64_t> living;  // when the living process with a pid began
  for (const Entry& entry : entries) living[entry.key.pid] = entry.key.began;
  std::erase_if(living, [&](const auto& process) { return !is_alive(process.first); });

  std::vector<Tally> tallies;
  living_ = {};
  for (Entry& entry : entries) {
    auto process = living.find(entry.key.pid);
    bool gone = process == living.end() || process->second != entry.key.began;
    bool last = gone && remove(entry);
    (last ? gone_ : living_).add(entry.sum);
    const Function* function = numbers_.find(static_cast<std::uint16_t>(entry.key.function));
    tallies.push_back({entry.key.pid, function, entry.sum.calls, entry.sum.time_ns,
                       entry.sum.failed, entry.sum.bytes, entry.sum.ended, entry.sum.failed_at,
                       static_cast<int>(entry.sum.error), last});
  }
  return tallies;
}

}  // namespace cudabpf
