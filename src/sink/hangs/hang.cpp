#include "sink/hangs/hang.hpp"

#include <algorithm>
#include <utility>

namespace cudabpf::hangs {

namespace {

const Doing* doing_of(const Doings& doings, std::uint32_t pid) {
  auto at = doings.find(pid);
  return at == doings.end() ? nullptr : &at->second;
}

// The first number under which two members entered different collectives; 0: none is known.
std::uint64_t first_mismatch(const Positions::Members& members) {
  std::map<std::uint64_t, const Entered*> seen;
  std::uint64_t first = 0;
  for (const auto& [number, member] : members)
    for (const Entered& entered : member.last) {
      auto [at, is_new] = seen.emplace(entered.sequence, &entered);
      if (!is_new && !at->second->agrees_with(entered) && (!first || entered.sequence < first))
        first = entered.sequence;
    }
  return first;
}

// The member whose collective under this number most others do not have. Where two differ, none is
// right by itself: both are named.
void name_who_differs(const Positions::Members& members, Stuck& stuck) {
  std::vector<const Entered*> entered;
  for (const auto& [number, member] : members) entered.push_back(member.find(stuck.sequence));
  auto agreeing = [&](const Entered& one) {
    return std::count_if(entered.begin(), entered.end(),
                         [&](const Entered* other) { return other && one.agrees_with(*other); });
  };
  std::ptrdiff_t most = 0;
  for (const Entered* one : entered)
    if (one) most = std::max(most, agreeing(*one));
  auto having_most = std::count_if(entered.begin(), entered.end(), [&](const Entered* one) {
    return one && agreeing(*one) == most;
  });
  for (std::size_t i = 0; i < entered.size(); i++) {
    if (!entered[i]) continue;
    stuck.members[i].at = *entered[i];
    stuck.members[i].named = having_most > most || agreeing(*entered[i]) < most;
    stuck.members[i].why = Kind::mismatch;
  }
}

// Why a rank that is behind does not come.
Kind why_behind(const Doing* doing) {
  if (doing && doing->gone) return Kind::gone;
  return doing && doing->is_stopped() ? Kind::stopped : Kind::missing_enter;
}

// A rank that waits itself is behind because of others, if any of those behind does not wait.
void name_who_is_behind(const Doings& doings, std::uint64_t overdue_ns, Stuck& stuck) {
  auto waits = [&](const RankState& member) {
    const Doing* doing = doing_of(doings, member.pid);
    return doing && !doing->gone && doing->open && doing->open->open_ns >= overdue_ns;
  };
  bool all_wait = std::none_of(stuck.members.begin(), stuck.members.end(),
                               [&](const auto& member) { return member.behind && !waits(member); });
  for (RankState& member : stuck.members) {
    if (!member.behind || (!all_wait && waits(member))) continue;
    member.named = true;
    member.why = why_behind(doing_of(doings, member.pid));
    if (stuck.kind == Kind::missing_enter) stuck.kind = member.why;
  }
}

// A rank that has entered everything, but queued it in a group that it has not ended.
bool name_open_groups(const Positions& positions, Stuck& stuck) {
  bool any = false;
  for (RankState& member : stuck.members) {
    if (!member.at || !member.at->group || !positions.has_open_group(member.pid, member.at->group))
      continue;
    member.named = any = true;
    member.why = Kind::group_open;
  }
  return any;
}

// A send that its peer has not received, or the other way round; both are recorded.
bool name_missing_peers(const Positions::Members& members, Stuck& stuck) {
  auto by_rank = [&](std::int32_t rank) -> std::pair<const Member*, RankState*> {
    std::size_t i = 0;
    for (const auto& [number, member] : members) {
      if (member.of.rank == rank) return {&member, &stuck.members[i]};
      i++;
    }
    return {nullptr, nullptr};
  };
  bool any = false;
  for (const auto& [number, member] : members)
    for (const auto& [pair, count] : member.pairs) {
      auto [op, peer] = pair;
      auto [other, state] = by_rank(peer);
      if (!other || !member.of.rank || (op != Op::send && op != Op::recv)) continue;
      auto answer = other->pairs.find({op == Op::send ? Op::recv : Op::send, *member.of.rank});
      if (answer != other->pairs.end() && answer->second >= count) continue;
      state->named = any = true;
      state->why = Kind::missing_peer;
    }
  return any;
}

// Whether some rank has not entered what others have, or, if all have, not launched their graphs.
bool find_who_is_behind(Stuck& stuck, std::uint64_t replayed) {
  bool any = false;
  for (RankState& member : stuck.members) any |= member.behind = member.sequence < stuck.sequence;
  if (any || stuck.graphs_unknown) return any;
  for (RankState& member : stuck.members)
    stuck.in_graphs |= member.behind = member.replayed.collectives < replayed;
  return stuck.in_graphs;
}

Stuck judged(const Positions& positions, std::uint64_t identity, const Positions::Members& members,
             const Doings& doings, std::uint64_t overdue_ns, bool uncertain) {
  Stuck stuck;
  stuck.identity = identity;
  stuck.sequence = furthest(members);
  stuck.graphs_unknown = !positions.knows_graphs(members);
  for (const auto& [number, member] : members) {
    if (member.of.ranks) stuck.ranks = member.of.ranks;
    RankState& state = stuck.members.emplace_back();
    state.rank = member.of.rank;
    state.pid = member.pid;
    state.sequence = member.sequence();
    state.replayed = member.replayed;
    if (!member.last.empty()) state.at = member.last.back();
    const Doing* doing = doing_of(doings, member.pid);
    stuck.waits |= doing && doing->open && doing->open->open_ns >= overdue_ns;
  }
  bool any_behind = find_who_is_behind(stuck, most_replayed(members));
  if (uncertain || is_uncertain(members)) {
    stuck.kind = Kind::unknown;
  } else if (std::uint64_t number = first_mismatch(members)) {
    stuck.kind = Kind::mismatch;
    stuck.sequence = number;
    name_who_differs(members, stuck);
  } else if (name_open_groups(positions, stuck)) {
    stuck.kind = Kind::group_open;
  } else if (any_behind) {
    stuck.kind = Kind::missing_enter;
    name_who_is_behind(doings, overdue_ns, stuck);
  } else if (name_missing_peers(members, stuck)) {
    stuck.kind = Kind::missing_peer;
  }
  // What is missing may be in a graph.
  if (stuck.kind == Kind::all_entered && stuck.graphs_unknown) stuck.kind = Kind::unknown;
  std::stable_sort(stuck.members.begin(), stuck.members.end(),
                   [](const RankState& a, const RankState& b) { return a.rank < b.rank; });
  return stuck;
}

// The communicators that ranks have been making for too long.
std::vector<Stuck> being_made(const Positions& positions, std::uint64_t now,
                              std::uint64_t overdue_ns) {
  constexpr std::int32_t MAX_ABSENT = 64;  // that are listed
  std::map<std::uint64_t, Stuck> found;
  for (const auto& [identity, one] : positions.making()) {
    Stuck& stuck = found[identity];
    stuck.identity = identity;
    stuck.kind = Kind::making;
    stuck.ranks = one.ranks;
    RankState& member = stuck.members.emplace_back();
    member.rank = one.rank;
    member.pid = one.pid;
    stuck.waits |= now > one.ts && now - one.ts >= overdue_ns;
  }
  std::vector<Stuck> overdue;
  for (auto& [identity, stuck] : found) {
    for (std::int32_t rank = 0; rank < std::min(stuck.ranks.value_or(0), MAX_ABSENT); rank++)
      if (std::none_of(stuck.members.begin(), stuck.members.end(),
                       [&](const RankState& member) { return member.rank == rank; }))
        stuck.absent.push_back(rank);
    if (stuck.waits) overdue.push_back(std::move(stuck));
  }
  return overdue;
}

// Those that explain a hang come first; what is only told comes last.
int order(Kind kind) {
  switch (kind) {
    case Kind::gone:
      return 0;
    case Kind::stopped:
      return 1;
    case Kind::mismatch:
      return 2;
    case Kind::group_open:
      return 3;
    case Kind::missing_enter:
      return 4;
    case Kind::making:
      return 5;
    case Kind::missing_peer:
      return 6;
    case Kind::unknown:
      return 7;
    case Kind::all_entered:
    case Kind::waiting:
      return 8;
  }
  return 8;
}

bool is_over(const Positions::Members& members) {
  return std::all_of(members.begin(), members.end(),
                     [](const auto& member) { return member.second.ended; });
}

}  // namespace

Hang judge(const Positions& positions, const Doings& doings, std::uint64_t now,
           std::uint64_t overdue_ns, std::uint64_t lost) {
  Hang hang;
  hang.ts = now;
  hang.lost = lost;
  for (const auto& [pid, doing] : doings) {
    if (!doing.called_ts && !doing.open) continue;  // it has nothing to do with GPUs
    hang.processes.push_back(doing);
    if (doing.open) hang.longest_ns = std::max(hang.longest_ns, doing.open->open_ns);
  }
  bool uncertain = lost > 0 || positions.left_out();
  for (const auto& [identity, members] : positions.communicators()) {
    if (members.empty() || is_over(members)) continue;
    Stuck stuck = judged(positions, identity, members, doings, overdue_ns, uncertain);
    if (stuck.waits || stuck.kind != Kind::all_entered) hang.communicators.push_back(stuck);
  }
  for (Stuck& stuck : being_made(positions, now, overdue_ns))
    hang.communicators.push_back(std::move(stuck));
  for (const auto& [number, member] : positions.late()) {
    if (member.ended) continue;
    Stuck stuck = judged(positions, 0, {{number, member}}, doings, overdue_ns, true);
    hang.communicators.push_back(stuck);
  }
  std::stable_sort(hang.communicators.begin(), hang.communicators.end(),
                   [](const Stuck& a, const Stuck& b) {
                     return std::pair(order(a.kind), !a.waits) < std::pair(order(b.kind), !b.waits);
                   });
  if (!hang.communicators.empty()) hang.kind = hang.communicators.front().kind;
  return hang;
}

bool is_any_behind(const Positions& positions, std::uint64_t now, std::uint64_t overdue_ns) {
  std::vector<Positions::Behind> behind = positions.behind();
  return std::any_of(behind.begin(), behind.end(), [&](const Positions::Behind& one) {
    return now > one.since && now - one.since >= overdue_ns;
  });
}

}  // namespace cudabpf::hangs
