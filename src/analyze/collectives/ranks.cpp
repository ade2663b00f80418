#include "analyze/collectives/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analyze/derived/processes.hpp"
#include "trace/merged.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

Ranks::Ranks(Names& names, const ThreadsAtWork& threads, Part part)
    : names_(names),
      part_(part),
      exit_(names.add("exit")),
      runs_(names, part, [this](const CollectiveRun& run) { take(run); }),
      matches_(names),
      threads_(threads) {}

void Ranks::line(const Line& line) {
  runs_.line(line);
  if (line.kind == LineKind::lost) lost(line);
  if (line.kind == LineKind::process && line.op == exit_) exits_[line.process->number] = line.ts;
}

void Ranks::lost(const Line& line) {
  if (names_.text(line.severity) == "degraded") return;
  auto since = number_in<std::uint64_t>(parsed(line.text), "since");
  certain_until_ = std::min(certain_until_, since.value_or(0));
}

void Ranks::take(const CollectiveRun& run) {
  exchanges_.add(run, runs_.communicators());
  const TracedCommunicator* communicator = runs_.communicators().find(run.communicator());
  if (!communicator || !communicator->is_counted_from_first()) {
    not_counted_++;
    return;
  }
  OfRank& rank = of_rank_[communicator->number];
  rank.process = run.process;
  rank.entered++;
  if (run.is_counted()) rank.last_seq = std::max(rank.last_seq, run.calls.back().seq);
  rank.last_ts = std::max(rank.last_ts, run.ts);
  matches_.add(run, *communicator);
}

void Ranks::take_losses(const TraceFacts& facts) {
  auto add = [this](const std::string& text) { lost_ += (lost_.empty() ? "" : ", ") + text; };
  bool any = false;
  for (const auto& [reason, loss] : facts.losses) {
    if (loss.degraded) continue;
    any = true;
    add(loss.text(reason));
  }
  bool says_when = certain_until_ != Part::OPEN;
  if (any && !says_when) certain_until_ = 0;
  if (facts.malformed) add(count_of(facts.malformed, "line", "lines") + " that could not be read");
  for (const std::string& file : facts.missing) add(file);
  if (facts.malformed || !facts.missing.empty()) certain_until_ = 0;
}

void Ranks::take_clocks(const TraceFacts& facts) {
  OrderBound bound = order_bound(facts.header.merged);
  knows_order_ = bound.known;
  order_error_ = bound.ns;
}

void Ranks::finish(const TraceFacts& facts) {
  take_losses(facts);
  take_clocks(facts);
  runs_.finish(facts);
  matches_.finish();
  mismatches_ = matches_.mismatches();
  is_complete_ = lost_.empty() && facts.cut_off.empty() && part_.is_whole() &&
                 !runs_.books().left_out && !exchanges_.left_out();
  std::map<std::uint64_t, Members> by_identity;
  for (const Match& match : matches_.all()) by_identity[match.identity].push_back(&match);
  for (const auto& [identity, ranks] : runs_.communicators().by_identity())
    if (by_identity.contains(identity) || exchanges_.has_any_of(ranks))
      examine(ranks, by_identity[identity]);
  if (!lost_.empty()) mismatches_ = Mismatches();
  std::ranges::stable_sort(communicators_, [](const OfCommunicator& a, const OfCommunicator& b) {
    return std::pair(a.recorded.size(), a.ranks) > std::pair(b.recorded.size(), b.ranks);
  });
}

// Two ranks cannot be the same one: the identity was used again.
bool Ranks::is_twice(const OfCommunicator& of) const {
  std::set<std::uint32_t> seen;
  return std::ranges::any_of(of.recorded,
                             [&](const OfRank& one) { return !seen.insert(one.rank).second; });
}

void Ranks::examine(const Communicators::OfIdentity& ranks, const Members& matches) {
  OfCommunicator of;
  Communicators::OfIdentity counted;
  of.identity = *ranks.front()->identity;
  std::size_t without_rank = 0;
  for (const TracedCommunicator* known : ranks) {
    if (!known->is_counted_from_first()) continue;
    counted.push_back(known);
    if (known->ranks) of.ranks = *known->ranks;
    OfRank rank = of_rank_[known->number];  // it may have entered none
    rank.communicator = known->number;
    rank.pid = known->pid;
    rank.host = known->host;
    without_rank += !known->rank;
    rank.rank = known->rank.value_or(0);
    if (auto exit = exits_.find(rank.process); exit != exits_.end()) rank.exited = exit->second;
    of.recorded.push_back(rank);
  }
  std::ranges::sort(of.recorded, {}, &OfRank::rank);
  if (without_rank)
    of.why_inconclusive = "not all recorded ranks are known by their number";
  else if (is_twice(of))
    of.why_inconclusive = "a rank is there twice, so the communicator's identity was used again";
  else if (of.recorded.size() < 2)
    of.why_inconclusive = "only one of its ranks was recorded";
  else
    compare(of, counted, matches);
  judge(of);
  communicators_.push_back(std::move(of));
}

void Ranks::choose_times(OfCommunicator& of, const Members& matches) const {
  bool one_host = std::ranges::all_of(
      of.recorded, [&](const OfRank& rank) { return rank.host == of.recorded.front().host; });
  bool measured = std::ranges::any_of(matches, [](const Match* match) {
    return std::ranges::count_if(
               match->ranks, [](const MatchedRank& rank) { return rank.gpu.operations > 0; }) > 1;
  });
  if (measured || one_host || knows_order_)
    of.skew.emplace(measured ? Skew::Times::gpu : Skew::Times::host, one_host ? 0 : order_error_);
  else
    of.why_inconclusive =
        "there are no GPU times, and how far the hosts' clocks differ is not known";
}

namespace {

std::uint64_t first_entered(const Match* match) {
  return std::ranges::min(match->ranks, {}, &MatchedRank::ts).ts;
}

}  // namespace

void Ranks::compare(OfCommunicator& of, const Communicators::OfIdentity& members, Members matches) {
  Exchanges::Found found = exchanges_.find(members, mismatches_);
  of.exchanges = found.books;
  of.knows_unmatched = is_complete_;
  for (const Match& match : found.matches) matches.push_back(&match);
  std::ranges::stable_sort(matches, {}, first_entered);
  choose_times(of, matches);
  if (!of.skew) return;
  // A send may be done before its receive is asked for, so when they were asked for tells nothing.
  if (of.skew->times() == Skew::Times::host) {
    std::erase_if(matches, [](const Match* match) { return match->is_exchange; });
    if (matches.empty())
      of.why_inconclusive = "there are no GPU times, and sends and receives need them";
  }
  std::map<std::uint64_t, std::uint32_t> rank_of;
  for (const OfRank& rank : of.recorded) rank_of[rank.communicator] = rank.rank;
  std::uint64_t of_process = find_steps(of);
  constexpr std::uint64_t STEPS = 10, MAX_PER_STEP = 20;
  of.per_step = std::clamp<std::uint64_t>(matches.size() / STEPS, 1, MAX_PER_STEP);
  std::uint64_t compared = 0;
  for (const Match* match : matches) {
    bool certain = std::ranges::all_of(
        match->ranks, [this](const MatchedRank& rank) { return rank.end < certain_until_; });
    if (!certain) {
      of.after_loss++;
      continue;
    }
    of.incomplete += !match->is_exchange && match->ranks.size() < of.recorded.size();
    if (match->is_first) {
      of.at_set_up++;
      continue;
    }
    std::vector<std::uint32_t> ranks;
    for (const MatchedRank& rank : match->ranks) ranks.push_back(rank_of[rank.communicator]);
    std::optional<std::uint64_t> step =
        of.by_iterations ? step_of(*match, of_process) : std::optional(compared++ / of.per_step);
    of.skew->add(*match, ranks, of.ranks, step, waits_);
    if (waits_.size() <= MAX_WAITS) continue;
    waits_left_out_ += waits_.size() - MAX_WAITS;
    waits_.resize(MAX_WAITS);
  }
}

std::uint64_t Ranks::find_steps(OfCommunicator& of) {
  for (const OfRank& rank : of.recorded)
    for (const ThreadWork& thread : threads_.threads()) {
      if (thread.process != rank.process) continue;
      iterations_ = find_iterations(thread, part_);
      if (iterations_.sorted_times.size() < Skew::FEWEST_STEPS) continue;
      of.by_iterations = true;
      of.step_time = iterations_.time_at(0.5);
      return rank.process;
    }
  return 0;
}

// Nothing: it is in none, or in one of those that warm up. Most exchanges are between other ranks
// than the one whose iterations are the steps.
std::optional<std::uint64_t> Ranks::step_of(const Match& match, std::uint64_t of_process) const {
  auto member = std::ranges::find(match.ranks, of_process, &MatchedRank::process);
  bool is_member = member != match.ranks.end();
  if (!is_member && !(match.is_exchange && knows_order_)) return std::nullopt;
  std::uint64_t entered = is_member ? member->ts : first_entered(&match);
  auto after = std::ranges::upper_bound(iterations_.each, entered, {}, &Iteration::begin);
  if (after == iterations_.each.begin()) return std::nullopt;
  auto index = static_cast<std::uint64_t>(after - iterations_.each.begin()) - 1;
  if (index < iterations_.warm_up || entered >= iterations_.each[index].end) return std::nullopt;
  return index;
}

void Ranks::judge(OfCommunicator& of) const {
  if (!of.skew || !of.why_inconclusive.empty()) return;
  if (!lost_.empty()) {
    of.why_inconclusive = "records were lost: " + lost_;
    return;
  }
  if (of.skew->steps().size() < Skew::FEWEST_STEPS) {
    of.why_inconclusive = "fewer than three steps have collectives of two ranks or more";
    return;
  }
  of.named = of.skew->named();
  of.verdict = of.skew->verdict();
  if (of.verdict == SkewVerdict::inconclusive)
    of.why_inconclusive = "there are no GPU times, and no rank always enters last";
}

}  // namespace cudabpf::analyze
