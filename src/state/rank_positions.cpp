#include "state/rank_positions.hpp"

#include <algorithm>

#include "cudabpf/describe.hpp"

namespace cudabpf::ranks {

namespace {

template <typename Number>
std::optional<Number> number(const Call& call, Role role) {
  auto value = argument_of(*call.function, call.words, role);
  return value ? std::optional(static_cast<Number>(*value)) : std::nullopt;
}

bool has_failed(const Call& call) {
  return call.has_return && call.function->is_failure(call.result);
}

}  // namespace

bool Entered::agrees_with(const Entered& other) const {
  // A reduction that the program made has a number of its own in each process.
  constexpr std::uint32_t FIRST_OWN = 5;
  bool own = reduction.value_or(0) >= FIRST_OWN && other.reduction.value_or(0) >= FIRST_OWN;
  return op == other.op && count == other.count && datatype == other.datatype &&
         root == other.root && (own || reduction == other.reduction);
}

const Entered* Member::find(std::uint64_t number) const {
  auto at = std::find_if(last.begin(), last.end(),
                         [&](const Entered& one) { return one.sequence == number; });
  return at == last.end() ? nullptr : &*at;
}

Member* Positions::member_of(const Communicator& of) {
  Members& among = of.identity ? communicators_[*of.identity] : late_;
  auto at = among.find(of.number);
  if (at == among.end()) {
    if (members_ >= MAX_MEMBERS) {
      left_out_ = true;
      return nullptr;
    }
    members_++;
    at = among.emplace(of.number, Member()).first;
  }
  at->second.pid = of.pid;
  at->second.of = of;
  return &at->second;
}

void Positions::note(const Call& call, bool open) {
  if (call.function->launches_graph()) return open ? void() : launch_graph(call);
  if (!open) follow_group(call);
  if (open && call.details.identity && !call.parent && making_.size() < MAX_MEMBERS)
    making_.emplace(*call.details.identity,
                    Making{call.pid, call.ts, number<std::int32_t>(call, Role::rank),
                           number<std::int32_t>(call, Role::ranks)});
  for (const Communicator* of : call.also_made) member_of(*of);
  if (!call.communicator || call.parent) return;
  Member* member = member_of(*call.communicator);
  if (!member) return;
  const Function& function = *call.function;
  if (function.type == Type::collective) return enter(*member, call, open);
  bool ends = function.type == Type::communicator &&
              (function.op == Op::destroy || function.op == Op::abort);
  if (ends && !open && !has_failed(call)) member->ended = true;
}

void Positions::enter(Member& member, const Call& call, bool open) {
  if (call.function->meaning.pairwise) {
    if (!open && call.sequence)
      member.pairs[{call.function->op, number<std::int32_t>(call, Role::peer).value_or(-1)}] =
          call.sequence;
    return;
  }
  if (!call.sequence) {  // it failed
    std::erase_if(member.last, [&](const Entered& one) { return one.call == call.id; });
    return;
  }
  if (call.captured && !open && member.of.identity) {
    if (captured_.size() < MAX_CAPTURED)
      captured_[call.id] = {*member.of.identity, member.of.number, call.pid};
    else
      left_out_ = true;
  }
  if (!member.last.empty() && member.last.back().sequence >= call.sequence) return;
  Entered entered;
  entered.sequence = call.sequence;
  entered.call = call.id;
  entered.ts = call.ts;
  entered.group = call.group;
  entered.op = call.function->op;
  entered.count = argument_of(*call.function, call.words, Role::count);
  entered.datatype = number<std::uint32_t>(call, Role::nccl_type);
  entered.reduction = number<std::uint32_t>(call, Role::nccl_op);
  entered.root = number<std::int32_t>(call, Role::root);
  member.last.push_back(entered);
  if (member.last.size() > LAST) member.last.pop_front();
}

// Operations between two ranks are left out: each rank has others of them.
void Positions::launch_graph(const Call& call) {
  if (call.captured || has_failed(call)) return;
  bool known =
      call.graph && std::none_of(call.graph->operations.begin(), call.graph->operations.end(),
                                 [](const auto& operation) { return operation.first.conditional; });
  if (!known) {
    if (unknown_graphs_.size() < MAX_MEMBERS) unknown_graphs_.insert(call.pid);
    return;
  }
  Member* last = nullptr;
  for (const CapturedCollective& one : call.graph->collectives) {
    auto captured = captured_.find(one.call);
    if (captured == captured_.end()) continue;
    Members& members = communicators_[captured->second.identity];
    auto member = members.find(captured->second.number);
    if (member == members.end()) continue;
    Replayed& replayed = member->second.replayed;
    replayed.collectives++;
    replayed.ts = call.ts;
    if (last != &member->second) replayed.launches++;
    last = &member->second;
  }
}

bool Positions::knows_graphs(const Members& members) const {
  return std::none_of(members.begin(), members.end(), [&](const auto& member) {
    return unknown_graphs_.contains(member.second.pid);
  });
}

void Positions::follow_group(const Call& call) {
  if (call.function->type != Type::group || !call.group || call.parent) return;
  std::pair key{call.pid, call.group};
  if (call.function->op == Op::start) {
    if (groups_.size() < MAX_MEMBERS) groups_[key]++;
    return;
  }
  auto group = groups_.find(key);
  if (group != groups_.end() && --group->second == 0) groups_.erase(group);
}

std::uint64_t furthest(const Positions::Members& members) {
  std::uint64_t most = 0;
  for (const auto& [number, member] : members) most = std::max(most, member.sequence());
  return most;
}

std::uint64_t most_replayed(const Positions::Members& members) {
  std::uint64_t most = 0;
  for (const auto& [number, member] : members) most = std::max(most, member.replayed.collectives);
  return most;
}

bool is_uncertain(const Positions::Members& members) {
  return std::any_of(members.begin(), members.end(), [](const auto& member) {
    return member.second.of.late || member.second.of.lost;
  });
}

std::vector<Positions::Behind> Positions::behind() const {
  std::vector<Behind> behind;
  for (const auto& [identity, members] : communicators_) {
    if (is_uncertain(members)) continue;
    std::uint64_t most = furthest(members);
    std::uint64_t replayed = knows_graphs(members) ? most_replayed(members) : 0;
    std::optional<std::uint64_t> entered_at, launched_at;
    auto note_first = [](std::optional<std::uint64_t>& first, std::uint64_t ts) {
      first = std::min(first.value_or(ts), ts);
    };
    for (const auto& [number, member] : members) {
      if (const Entered* entered = member.find(most)) note_first(entered_at, entered->ts);
      if (member.replayed.collectives == replayed) note_first(launched_at, member.replayed.ts);
    }
    for (const auto& [number, member] : members) {
      if (member.ended) continue;
      if (member.sequence() < most && entered_at) behind.push_back({member.pid, *entered_at});
      if (member.replayed.collectives < replayed && launched_at)
        behind.push_back({member.pid, *launched_at});
    }
  }
  return behind;
}

bool Positions::has_open_group(std::uint32_t pid, std::uint64_t group) const {
  return groups_.contains({pid, group});
}

// Its ranks stay: that they ended is what others may wait for. What nobody else is in goes.
void Positions::process_gone(std::uint32_t pid) {
  std::erase_if(groups_, [&](const auto& group) { return group.first.first == pid; });
  std::erase_if(captured_, [&](const auto& one) { return one.second.pid == pid; });
  unknown_graphs_.erase(pid);
  auto is_its = [&](const auto& member) { return member.second.pid == pid; };
  members_ -= std::erase_if(late_, is_its);
  for (auto at = communicators_.begin(); at != communicators_.end();) {
    Members& members = at->second;
    bool over = std::all_of(members.begin(), members.end(), [&](const auto& member) {
      return is_its(member) || member.second.ended;
    });
    bool has_it = std::any_of(members.begin(), members.end(), is_its);
    if (over && has_it) members_ -= members.size();
    at = over && has_it ? communicators_.erase(at) : std::next(at);
  }
}

}  // namespace cudabpf::ranks
