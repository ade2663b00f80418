#include "analyze/collectives/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

void Collectives::Row::add(const Row& other) {
  count += other.count;
  in_graphs += other.in_graphs;
  gpu.add(other.gpu);
  host.add(other.host);
  hidden = saturating_sum(hidden, other.hidden);
}

// nccl-tests' doc/PERFORMANCE.md derives these.
BandwidthFactors bandwidth_factors(Name op, std::uint32_t ranks) {
  double n = ranks;
  if (op == Op::all_reduce) return {1, 2 * (n - 1) / n};
  if (op == Op::all_gather || op == Op::reduce_scatter || op == Op::all_to_all) return {n, n - 1};
  return {};
}

std::string function_of(const std::vector<CollectiveCall>& calls, const Names& names) {
  std::map<std::string_view, std::size_t> counts;
  for (const CollectiveCall& call : calls) counts[names.text(call.op)]++;
  std::string text;
  for (const auto& [op, count] : counts) {
    if (!text.empty()) text += ", ";
    text += count > 1 ? fmt::format("{} x{}", op, count) : std::string(op);
  }
  return text;
}

Collectives::Collectives(Names& names, Part part)
    : names_(names), runs_(names, part, [this](const CollectiveRun& run) { take(run); }) {}

void Collectives::take(const CollectiveRun& run) {
  std::uint64_t size = 0;
  for (const CollectiveCall& call : run.calls) size = saturating_sum(size, call.size);
  Key key(run.communicator(), run.pid, function_of(run.calls, names_), size);
  if (!has_room_for(by_key_, key, MAX_ROWS)) key = {0, 0, "(others)", 0};
  Row& row = by_key_[key];
  std::tie(row.communicator, row.pid, row.name, row.size) = key;
  row.several = run.calls.size() > 1;
  row.count++;
  row.in_graphs += run.launch > 0;
  if (!run.launch && run.end > run.ts) row.host.add(run.end - run.ts);
  if (!run.measured()) return;
  row.gpu.add(run.gpu.time);
  row.hidden = saturating_sum(row.hidden, std::min(run.gpu.hidden, run.gpu.time));
}

namespace {

// Smaller ones take most of their time to begin.
constexpr std::uint64_t LEAST_FOR_BANDWIDTH = 8192;

void add_bandwidth(Collectives::Row& row, Name op, const TracedCommunicator* communicator) {
  if (row.several || row.size < LEAST_FOR_BANDWIDTH || !row.gpu.total()) return;
  double bytes = static_cast<double>(row.size) * static_cast<double>(row.gpu.count());
  bool needs_ranks = op == Op::all_reduce || op == Op::all_gather || op == Op::reduce_scatter ||
                     op == Op::all_to_all;
  bool knows_ranks = communicator && communicator->ranks.value_or(0) > 0;
  if (needs_ranks && !knows_ranks) return;
  BandwidthFactors factors = bandwidth_factors(op, needs_ranks ? *communicator->ranks : 1);
  row.algorithm_bytes = bytes * factors.algorithm;
  row.bus_bytes = bytes * factors.bus;
}

}  // namespace

void Collectives::finish(const TraceFacts& facts) {
  runs_.finish(facts);
  for (auto& [key, row] : by_key_) {
    add_bandwidth(row, names_.add(row.name), runs_.communicators().find(row.communicator));
    rows_.push_back(std::move(row));
  }
  by_key_.clear();
  std::ranges::stable_sort(rows_, [](const Row& a, const Row& b) {
    return std::pair(a.gpu.total(), a.host.total()) > std::pair(b.gpu.total(), b.host.total());
  });
}

}  // namespace cudabpf::analyze
