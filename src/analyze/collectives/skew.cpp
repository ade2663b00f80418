#include "analyze/collectives/skew.hpp"

#include <algorithm>

#include "util/durations.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

struct Came {
  std::uint32_t rank = 0;
  std::uint64_t waited = 0, time = 0;
  const MatchedRank* who = nullptr;
};

// Whether the rank cannot have been done before the others had come.
bool has_to_wait(const Match& match, std::uint32_t rank, std::uint64_t of_all) {
  if (match.is_barrier) return true;
  if (of_all != 2 || match.root < 0) return false;  // others may stand between root and rank
  bool from_root = match.op == Op::broadcast || match.op == Op::scatter;
  bool to_root = match.op == Op::reduce || match.op == Op::gather;
  bool is_root = rank == static_cast<std::uint64_t>(match.root);
  return (from_root && !is_root) || (to_root && is_root);
}

// Those whose times are known; who came last is in front.
std::vector<Came> came_in(const Match& match, const std::vector<std::uint32_t>& ranks,
                          Skew::Times times) {
  std::vector<Came> all;
  std::uint64_t last = 0, shortest = ~std::uint64_t{0};
  for (std::size_t i = 0; i < match.ranks.size(); i++) {
    const MatchedRank& one = match.ranks[i];
    if (times == Skew::Times::gpu && !one.gpu.operations) continue;
    all.push_back({ranks[i], 0, one.gpu.time, &one});
    last = std::max(last, one.ts);
    shortest = std::min(shortest, one.gpu.time);
  }
  for (Came& one : all)
    one.waited = times == Skew::Times::gpu ? one.time - shortest : last - one.who->ts;
  std::ranges::stable_sort(all, {},
                           [](const Came& one) { return std::pair(one.waited, one.rank); });
  return all;
}

std::uint64_t median_time_of(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return quantile_of(values, 0.5);
}

}  // namespace

std::string_view to_string(SkewVerdict verdict) {
  switch (verdict) {
    case SkewVerdict::transfer:
      return "transfer";
    case SkewVerdict::mixed:
      return "mixed";
    case SkewVerdict::skew:
      return "skew";
    case SkewVerdict::inconclusive:
      break;
  }
  return "inconclusive";
}

void Skew::Waited::add(std::uint64_t time) {
  count++;
  total = saturating_sum(total, time);
  longest = std::max(longest, time);
}

void Skew::add(const Match& match, const std::vector<std::uint32_t>& ranks, std::uint64_t of_all,
               std::optional<std::uint64_t> number, std::vector<PeerWait>& waits) {
  std::vector<Came> all = came_in(match, ranks, times_);
  if (all.size() < 2) return;
  const Came& last = all.front();
  Step here;
  std::uint64_t late = 0;
  for (const Came& one : all) {
    here.time = saturating_sum(here.time, one.time);
    if (!one.waited || !has_to_wait(match, one.rank, of_all)) continue;
    if (times_ == Times::gpu)
      waits.push_back({one.who->process, one.who->communicator, one.rank, last.rank,
                       one.who->gpu.device, one.who->gpu.begin, one.who->gpu.begin + one.waited});
    if (one.waited <= noise_) {
      below_noise_ = saturating_sum(below_noise_, one.waited);
      continue;
    }
    late = std::max(late, one.waited);
    here.waited = saturating_sum(here.waited, one.waited);
    waited_[{one.rank, last.rank}].add(one.waited);
  }
  matched_++;
  exchanges_ += match.is_exchange;
  time_ = saturating_sum(time_, here.time);
  transfer_ = saturating_sum(transfer_, saturating_product<std::uint64_t>(last.time, all.size()));
  beyond_noise_ = saturating_sum(beyond_noise_, here.waited);
  if (!number) return;
  Step& step = steps_[*number];
  step.matched++;
  step.time = saturating_sum(step.time, here.time);
  step.waited = saturating_sum(step.waited, here.waited);
  if (late) step.late[last.rank] = saturating_sum(step.late[last.rank], late);
}

double Skew::share_of_waiting() const {
  std::vector<double> shares;
  for (const auto& [number, step] : steps_)
    if (step.time)
      shares.push_back(static_cast<double>(step.waited) / static_cast<double>(step.time));
  if (shares.empty()) return 0;
  std::ranges::sort(shares);
  return shares[shares.size() / 2];
}

SkewVerdict Skew::verdict() const {
  if (steps_.size() < FEWEST_STEPS) return SkewVerdict::inconclusive;
  // How long a transfer takes is not known by when it was asked for.
  if (times_ == Times::host) return named() ? SkewVerdict::skew : SkewVerdict::inconclusive;
  double share = share_of_waiting();
  if (share < LITTLE) return SkewVerdict::transfer;
  return share > MUCH ? SkewVerdict::skew : SkewVerdict::mixed;
}

namespace {

// The rank that was late by most of what all were in a step. Nothing: there is none.
std::optional<std::uint32_t> latest_in(const Skew::Step& step) {
  double all = 0;
  for (const auto& [rank, time] : step.late) all += static_cast<double>(time);
  for (const auto& [rank, time] : step.late)
    if (static_cast<double>(time) >= Skew::SHARE_OF_MOST * all) return rank;
  return std::nullopt;
}

}  // namespace

// One step that took unusually long says nothing about the others: so steps are counted, and what
// is usual is the median.
std::optional<Skew::Named> Skew::named() const {
  if (steps_.size() < FEWEST_STEPS) return std::nullopt;
  std::map<std::uint32_t, std::vector<std::uint64_t>> late;
  std::map<std::uint32_t, std::size_t> latest;
  std::size_t with_any = 0;
  for (const auto& [number, step] : steps_) {
    with_any += !step.late.empty();
    for (const auto& [rank, time] : step.late) late[rank].push_back(time);
    if (auto rank = latest_in(step)) latest[*rank]++;
  }
  for (auto& [rank, times] : late) {
    times.resize(steps_.size());  // in the other steps, it was not late
    std::uint64_t usual = median_time_of(times);
    bool in_most =
        static_cast<double>(latest[rank]) >= SHARE_OF_MOST * static_cast<double>(with_any);
    if (usual > noise_ && in_most) return Named{rank, usual};
  }
  return std::nullopt;
}

}  // namespace cudabpf::analyze
