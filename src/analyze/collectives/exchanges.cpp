#include "analyze/collectives/exchanges.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "util/disjoint_sets.hpp"

namespace cudabpf::analyze {

namespace {

bool is_send_or_receive(const CollectiveCall& call) {
  return call.op == Op::send || call.op == Op::recv;
}

}  // namespace

void Exchanges::add(const CollectiveRun& run, const Communicators& communicators) {
  if (std::ranges::none_of(run.calls, is_send_or_receive)) return;
  if (kept_ + run.calls.size() > most_) {
    left_out_ += run.calls.size();
    return;
  }
  Run one;
  one.does_more = !run.communicator();
  one.match.seq = run.calls.front().seq;
  one.match.launch = run.launch;
  one.match.op = run.calls.front().op;
  one.match.is_barrier = one.match.is_exchange = true;
  one.match.ranks = {{run.communicator(), run.process, run.ts, run.end, run.gpu}};
  for (const CollectiveCall& call : run.calls) {
    const TracedCommunicator* communicator = communicators.find(call.communicator);
    if (!is_send_or_receive(call) || !call.seq || call.peer < 0 || !communicator ||
        !communicator->is_counted_from_first()) {
      one.does_more = true;
      continue;
    }
    one.match.is_first |= call.seq == 1 && run.launch <= 1;
    kept_++;
    operations_[call.communicator].push_back({.run = runs_.size(),
                                              .peer = call.peer,
                                              .seq = call.seq,
                                              .launch = run.launch,
                                              .size = call.size,
                                              .receives = call.op == Op::recv,
                                              .knows_size = call.size || !call.count});
  }
  runs_.push_back(std::move(one));
}

bool Exchanges::has_any_of(const Communicators::OfIdentity& members) const {
  return std::ranges::any_of(members, [this](const TracedCommunicator* member) {
    return operations_.contains(member->number);
  });
}

// In the order of the transfers, the sender's side first.
std::vector<Exchanges::Side> Exchanges::sides_of(const Communicators::OfIdentity& members) const {
  std::vector<Side> sides;
  for (const TracedCommunicator* member : members) {
    auto at = operations_.find(member->number);
    if (at == operations_.end()) continue;
    for (const Operation& one : at->second) {
      std::int64_t rank = *member->rank;
      sides.push_back({.from = one.receives ? one.peer : rank,
                       .to = one.receives ? rank : one.peer,
                       .communicator = member->number,
                       .operation = &one});
    }
  }
  std::ranges::sort(sides, {}, [](const Side& side) {
    const Operation& one = *side.operation;
    return std::tuple(side.from, side.to, one.seq, one.launch, one.receives, one.run);
  });
  return sides;
}

namespace {

// Calls `take` with each range of neighbours of which `key` says the same.
template <typename One, typename Key, typename Take>
void for_each_alike(std::span<const One> all, Key&& key, Take&& take) {
  while (!all.empty()) {
    auto other = std::ranges::find_if(all, [&](auto& one) { return key(one) != key(all.front()); });
    auto count = static_cast<std::size_t>(other - all.begin());
    take(all.first(count));
    all = all.subspan(count);
  }
}

}  // namespace

// What a rank sends to another. If only one of the two captured any of it, its graph may have run
// any number of times, so equal numbers prove nothing.
void Exchanges::meet(std::span<const Side> direction, std::vector<Transfer>& transfers,
                     std::vector<Side>& unmatched) {
  bool captured[2] = {false, false};  // by the sender, by the receiver
  for (const Side& side : direction)
    captured[side.operation->receives] |= side.operation->launch > 0;
  auto number_of = [](const Side& side) {
    return std::pair(side.operation->seq, side.operation->launch);
  };
  for_each_alike(direction, number_of, [&](std::span<const Side> alike) {
    bool two = alike.size() == 2 && !alike[0].operation->receives && alike[1].operation->receives;
    if (two && captured[0] == captured[1]) {
      transfers.push_back({alike[0], alike[1]});
      return;
    }
    for (const Side& side : alike) runs_[side.operation->run].lacks_partner = true;
    if (alike.size() == 1 && !captured[0] && !captured[1]) unmatched.push_back(alike[0]);
  });
}

std::vector<Exchanges::Group> Exchanges::groups_of(const std::vector<Side>& sides,
                                                   const std::vector<Transfer>& transfers) const {
  std::vector<std::size_t> runs;
  runs.reserve(sides.size());
  for (const Side& side : sides) runs.push_back(side.operation->run);
  std::ranges::sort(runs);
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  DisjointSets sets(runs.size());
  auto place_of = [&](const Side& side) {
    auto at = std::ranges::lower_bound(runs, side.operation->run);
    return static_cast<std::size_t>(at - runs.begin());
  };
  for (const Transfer& one : transfers) sets.join(place_of(one.sender), place_of(one.receiver));
  std::vector<Group> groups(runs.size());  // that of a set is at its root
  for (std::size_t i = 0; i < runs.size(); i++) groups[sets.root(i)].runs.push_back(runs[i]);
  for (const Transfer& one : transfers)
    if (one.receiver.operation->size && one.sender.from != one.sender.to)
      groups[sets.root(place_of(one.sender))].received.insert({one.sender.from, one.sender.to});
  std::erase_if(groups, [](const Group& group) { return group.runs.empty(); });
  return groups;
}

bool Exchanges::is_exchange(const Group& group) const {
  std::set<std::uint64_t> ranks;
  for (std::size_t run : group.runs) {
    if (runs_[run].does_more) return false;
    ranks.insert(runs_[run].match.ranks[0].communicator);
  }
  std::size_t count = group.runs.size();
  return count > 1 && ranks.size() == count &&
         (count == 2 || group.received.size() == count * (count - 1));
}

void Exchanges::judge(const Group& group, Found& found) const {
  bool lacks = std::ranges::any_of(group.runs, [&](auto run) { return runs_[run].lacks_partner; });
  if (lacks) {
    found.books.without_partner += group.runs.size();
  } else if (is_exchange(group)) {
    Match& match = found.matches.emplace_back(runs_[group.runs[0]].match);
    for (std::size_t run : std::span(group.runs).subspan(1)) {
      match.ranks.push_back(runs_[run].match.ranks[0]);
      match.is_first |= runs_[run].match.is_first;
    }
  } else if (group.runs.size() > 1 || runs_[group.runs[0]].does_more) {
    found.books.several_partners += group.runs.size();
  }  // else a rank sent to itself
}

void Exchanges::count_unmatched(const std::vector<Side>& unmatched,
                                const Communicators::OfIdentity& members, Books& books) {
  std::set<std::int64_t> ranks;
  for (const TracedCommunicator* member : members) ranks.insert(*member->rank);
  for (const Side& side : unmatched)
    if (ranks.contains(side.from) && ranks.contains(side.to))
      (side.operation->receives ? books.unmatched_receives : books.unmatched_sends)++;
}

Exchanges::Found Exchanges::find(const Communicators::OfIdentity& members, Mismatches& mismatches) {
  Found found;
  std::vector<Side> sides = sides_of(members), unmatched;
  std::vector<Transfer> transfers;
  found.books.operations = sides.size();
  for_each_alike(
      std::span<const Side>(sides), [](const Side& side) { return std::pair(side.from, side.to); },
      [&](std::span<const Side> direction) { meet(direction, transfers, unmatched); });
  auto receives = [](const Side& side) { return side.operation->receives; };
  if (std::ranges::any_of(sides, receives) && !std::ranges::all_of(sides, receives))
    count_unmatched(unmatched, members, found.books);
  for (const auto& [sender, receiver] : transfers) {
    const Operation &sent = *sender.operation, &received = *receiver.operation;
    if (sent.launch > 1 || !sent.knows_size || !received.knows_size || sent.size == received.size)
      continue;
    mismatches.add({*members.front()->identity, sent.seq, sender.communicator,
                    receiver.communicator, "bytes", std::to_string(sent.size),
                    std::to_string(received.size), static_cast<std::uint32_t>(sender.to)});
  }
  for (const Group& group : groups_of(sides, transfers)) judge(group, found);
  return found;
}

}  // namespace cudabpf::analyze
