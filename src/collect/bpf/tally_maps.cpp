#include "collect/bpf/tally_maps.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "util/console/log.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t BATCH = 512, MAX_BATCH = 1 << 20;

std::size_t cpus() { return static_cast<std::size_t>(std::max(libbpf_num_possible_cpus(), 1)); }

abi::cb_tally sum_of(std::span<const abi::cb_tally> of_cpus) {
  abi::cb_tally sum{};
  for (const abi::cb_tally& one : of_cpus) {
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

template <typename Value>
Value sum_of(std::span<const Value> only) {
  return only.front();
}

// The processes that live, with when they began: a pid may have had several.
class Living {
 public:
  template <typename Entry>
  void note(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      std::uint64_t& began = began_[entry.key.pid];
      began = std::max<std::uint64_t>(began, entry.key.began);
    }
  }
  void keep(const TallyMaps::IsAlive& is_alive) {
    std::erase_if(began_, [&](const auto& process) { return !is_alive(process.first); });
  }
  bool has(const abi::cb_tally_key& key) const {
    auto process = began_.find(key.pid);
    return process != began_.end() && process->second == key.began;
  }

 private:
  std::map<std::uint32_t, std::uint64_t> began_;
};

// Hands out each entry, those of a pid's earlier processes first, and whether that is the last
// time.
template <typename Value, typename Take>
void take_each(TallyMap<Value>& map, std::vector<typename TallyMap<Value>::Entry> entries,
               const Living& living, Take take) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.key.pid, a.key.began, a.key.what) <
           std::tie(b.key.pid, b.key.began, b.key.what);
  });
  for (auto& entry : entries) {
    bool last = !living.has(entry.key) && map.remove(entry);
    take(std::as_const(entry), last);
  }
}

Times times_of(const abi::cb_call_times& from) {
  static_assert(TIME_LIMITS == CB_TIME_LIMITS && TIME_LIMITS_NS[0] == CB_FIRST_TIME_LIMIT_NS);
  Times times{.time_ns = from.time_ns, .calls = {}};
  std::copy(std::begin(from.calls), std::end(from.calls), times.calls.begin());
  return times;
}

}  // namespace

template <typename Value>
TallyMap<Value>::TallyMap(int map, std::size_t of_each_key)
    : map_(map), of_each_key_(of_each_key), keys_(BATCH), values_(BATCH * of_each_key) {}

template <typename Value>
std::vector<typename TallyMap<Value>::Entry> TallyMap<Value>::read() {
  std::vector<Entry> entries;
  std::uint32_t position = 0, next = 0;
  for (bool first = true;;) {
    auto count = static_cast<std::uint32_t>(keys_.size());
    int error = bpf_map_lookup_batch(map_, first ? nullptr : &position, &next, keys_.data(),
                                     values_.data(), &count, nullptr);
    if (error == -ENOSPC && keys_.size() < MAX_BATCH) {  // entries with one hash are read at once
      keys_.resize(keys_.size() * 2);
      values_.resize(keys_.size() * of_each_key_);
      continue;
    }
    if (error && error != -ENOENT) {
      if (!failed_) log::warning("reading the counts of calls: {}", std::strerror(-error));
      failed_ = true;
      return entries;
    }
    std::span<const Value> values = values_;
    for (std::size_t i = 0; i < count; i++)
      entries.push_back({keys_[i], sum_of(values.subspan(i * of_each_key_, of_each_key_))});
    if (error) return entries;
    first = false;
    position = next;
  }
}

template <typename Value>
bool TallyMap<Value>::remove(Entry& entry) {
  if (bpf_map_lookup_elem(map_, &entry.key, values_.data()) != 0) return false;
  entry.sum = sum_of(std::span<const Value>(values_).first(of_each_key_));
  return bpf_map_delete_elem(map_, &entry.key) == 0;
}

void TallyMaps::Ends::add(const abi::cb_tally& sum) {
  ended += sum.ended;
  // While calls come and go on several CPUs, an end may be seen whose beginning is not.
  if (sum.calls > sum.ended) under_way += sum.calls - sum.ended;
}

TallyMaps::TallyMaps(const Maps& maps, const FunctionNumbers& numbers)
    : numbers_(numbers), functions_(maps.functions, cpus()) {
  if (maps.classes >= 0) classes_.emplace(maps.classes, 1);
  if (maps.failures >= 0) failures_.emplace(maps.failures, 1);
}

// A process adds to its entries only while it is marked as alive, and its entries are made only
// after that mark. So if the mark is gone after the entries were listed, they are final. A later
// process with the same pid has other entries.
Tallies TallyMaps::take(const IsAlive& is_alive) {
  auto functions = functions_.read();
  auto classes = classes_ ? classes_->read() : std::vector<TallyMap<abi::cb_call_times>::Entry>();
  auto failures = failures_ ? failures_->read() : std::vector<TallyMap<std::uint64_t>::Entry>();
  Living living;
  living.note(functions);
  living.note(classes);
  living.note(failures);
  living.keep(is_alive);

  Tallies tallies;
  living_ = {};
  take_each(functions_, std::move(functions), living, [&](const auto& entry, bool last) {
    (last ? gone_ : living_).add(entry.sum);
    const Function* function = numbers_.find(static_cast<std::uint16_t>(entry.key.what));
    tallies.functions.push_back({entry.key.pid, function, entry.sum.calls, entry.sum.time_ns,
                                 entry.sum.failed, entry.sum.bytes, entry.sum.ended,
                                 entry.sum.failed_at, static_cast<int>(entry.sum.error), last});
  });
  if (classes_)
    take_each(*classes_, std::move(classes), living, [&](const auto& entry, bool last) {
      tallies.classes.push_back(
          {entry.key.pid, static_cast<CallClass>(entry.key.what), times_of(entry.sum), last});
    });
  if (failures_)
    take_each(*failures_, std::move(failures), living, [&](const auto& entry, bool last) {
      tallies.failures.push_back(
          {entry.key.pid, static_cast<int>(entry.key.what), entry.sum, last});
    });
  return tallies;
}

}  // namespace cudabpf
