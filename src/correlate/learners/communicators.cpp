#include "correlate/learners/communicators.hpp"

#include <algorithm>
#include <array>

#include "cudabpf/describe.hpp"

namespace cudabpf {

namespace {

std::optional<std::int32_t> number(const Call& call, Role role) {
  auto word = argument_of(*call.function, call.words, role);
  return word ? std::optional(static_cast<std::int32_t>(*word)) : std::nullopt;
}

bool is_collective(const Function& function) { return function.type == Type::collective; }

bool is_about(const Function& function, std::initializer_list<Op> ops) {
  return function.type == Type::communicator && std::ranges::find(ops, function.op) != ops.end();
}
bool makes(const Function& function) { return is_about(function, {Op::create}); }
bool makes_all(const Function& function) { return is_about(function, {Op::create_all}); }
bool makes_of_another(const Function& function) {
  return is_about(function, {Op::split, Op::shrink, Op::grow});
}
bool ends(const Function& function) { return is_about(function, {Op::destroy, Op::abort}); }
bool asks(const Function& function) {
  return is_about(function, {Op::get_rank, Op::get_ranks, Op::get_device});
}

bool has_failed(const Call& call) {
  return call.has_return && call.function->is_failure(call.result);
}
bool has_succeeded(const Call& call) { return call.has_return && !has_failed(call); }

// What all ranks of a communicator that is made of another agree on: all of them count its children
// alike, since each takes part in making every one of them.
std::uint64_t identity_of_child(std::uint64_t parent, const Call& call) {
  enum : std::uint64_t { SPLIT = 1, SHRINK, GROW };
  const Op how = call.function->op;
  const std::uint64_t way = how == Op::split ? SPLIT : how == Op::shrink ? SHRINK : GROW;
  auto color = static_cast<std::uint32_t>(number(call, Role::color).value_or(0));
  return identity_of(std::array<std::uint64_t, 4>{parent, way, call.sequence, color});
}

// NCCL makes up the id itself, which all ranks get inside this one call. So what tells the call
// from all others stands for it.
std::uint64_t identity_of_all(const Call& call, std::span<const std::uint64_t> handles) {
  std::vector<std::uint64_t> words{call.pid, call.ts};
  words.insert(words.end(), handles.begin(), handles.end());
  return identity_of(words);
}

// Without a list, each rank has the device of its number.
std::optional<std::int32_t> device_of_rank(const Call& call, std::size_t rank) {
  if (rank < call.devices.size()) return call.devices[rank];
  bool has_list = argument_of(*call.function, call.words, Role::in_struct) != std::uint64_t{0};
  return has_list ? std::nullopt : std::optional(static_cast<std::int32_t>(rank));
}

}  // namespace

Communicators::Known* Communicators::known(std::uint32_t pid, std::uint64_t handle) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return nullptr;
  auto at = process->second.find(handle);
  return at == process->second.end() ? nullptr : &at->second;
}

Communicators::Known* Communicators::add(std::uint32_t pid, std::uint64_t handle,
                                         const Communicator& made) {
  OfProcess& process = processes_[pid];
  if (auto before = process.find(handle); before != process.end()) {  // it has ended unseen
    kept_ -= 1 + before->second.pairs.size();
    process.erase(before);
  }
  if (!bounds_.has_memory(Kept::communicators, kept_)) {
    bounds_.left_out(Kept::communicators);
    return nullptr;
  }
  kept_++;
  Known& known = process[handle];
  known.communicator = std::make_shared<Communicator>(made);
  known.communicator->number = next_number_++;
  known.communicator->pid = pid;
  return &known;
}

void Communicators::forget(const Frame& frame, std::uint32_t pid, std::uint64_t handle) {
  Known* of = known(pid, handle);
  // Another may have got its handle meanwhile.
  if (!of || of->communicator != frame.communicator) return;
  kept_ -= 1 + of->pairs.size();
  processes_[pid].erase(handle);
}

void Communicators::begin(ThreadId thread, Frame& frame) {
  const Function& function = *frame.function;
  if (function.type == Type::group && function.op == Op::start) {
    auto group = groups_.find(thread);
    if (group == groups_.end() && bounds_.has_memory(Kept::threads, groups_.size()))
      group = groups_.emplace(thread, Group{next_group_++, 0}).first;
    if (group != groups_.end()) group->second.depth++;
  }
  if (frame.parent) return;  // a part of that call
  if (auto group = groups_.find(thread); group != groups_.end()) frame.group = group->second.number;
  auto handle = argument_of(function, {frame.words.data(), frame.nwords}, Role::comm);
  if (!handle || !*handle) return;
  Known* of = known(thread.pid, *handle);
  if (!of && (is_collective(function) || asks(function))) {
    Communicator late;
    late.late = true;
    late.device = frame.details.device;
    of = add(thread.pid, *handle, late);
  }
  if (!of) return;
  frame.communicator = of->communicator;
  if (std::uint64_t* count = count_of(*of, frame)) frame.sequence = ++*count;
}

// What the call takes part in by its number; null: in nothing.
std::uint64_t* Communicators::count_of(Known& of, const Frame& frame) {
  const Function& function = *frame.function;
  if (makes_of_another(function)) return &of.children;
  if (!is_collective(function)) return nullptr;
  if (!function.meaning.pairwise) return &of.collectives;
  auto peer = argument_of(function, {frame.words.data(), frame.nwords}, Role::peer);
  Pair pair{function.op, peer ? static_cast<std::int32_t>(*peer) : -1};
  auto at = of.pairs.find(pair);
  if (at != of.pairs.end()) return &at->second;
  if (!bounds_.has_memory(Kept::communicators, kept_)) {
    bounds_.left_out(Kept::communicators);
    return nullptr;
  }
  kept_++;
  return &of.pairs[pair];
}

void Communicators::end(const Frame& frame, Call& call) {
  const Function& function = *call.function;
  follow_group(call);
  if (call.parent) return;
  auto handle = argument_of(function, call.words, Role::comm).value_or(0);
  Known* of = frame.communicator ? known(call.pid, handle) : nullptr;
  if (of && of->communicator != frame.communicator) of = nullptr;
  if (of && has_failed(call) && call.sequence) {  // it takes no part
    std::uint64_t* count = count_of(*of, frame);
    if (count && *count == call.sequence) --*count;
    call.sequence = 0;
    if (is_collective(function) && of->communicator->late && !of->communicator->version &&
        !of->collectives) {  // no communicator at all
      call.communicator = nullptr;
      forget(frame, call.pid, handle);
    }
    return;
  }
  if (!has_succeeded(call)) return;
  if (makes(function)) return made(call, nullptr);
  if (makes_all(function)) return made_all(call);
  if (of && makes_of_another(function)) return made(call, of);
  if (of && asks(function)) return told(*of, call);
  if (of && ends(function)) forget(frame, call.pid, handle);
}

void Communicators::follow_group(const Call& call) {
  const Function& function = *call.function;
  if (function.type != Type::group) return;
  bool is_over = function.op == Op::end || (function.op == Op::start && has_failed(call));
  auto group = groups_.find({call.pid, call.tid});
  if (is_over && group != groups_.end() && --group->second.depth == 0) groups_.erase(group);
}

void Communicators::made(Call& call, const Known* parent) {
  if (call.outs.empty() || !call.outs[0]) return;  // a rank that is in no part of the parent
  Communicator made;
  made.made_by = call.id;
  made.identity = call.details.identity;
  made.device = call.details.device;
  made.ranks = number(call, Role::ranks);
  made.rank = number(call, Role::rank);
  if (made.rank && *made.rank < 0) made.rank.reset();  // ncclCommGrow: as in the parent
  if (parent) {
    const Communicator& from = *parent->communicator;
    made.from = from.number;
    made.ordinal = call.sequence;
    made.color = number(call, Role::color);
    made.key = number(call, Role::key);
    if (!made.device) made.device = from.device;
    if (from.identity && !from.late && !from.lost)
      made.identity = identity_of_child(*from.identity, call);
  }
  if (Known* of = add(call.pid, call.outs[0], made)) call.communicator = of->communicator.get();
}

// One for each rank of a communicator, as far as they were recorded; the others stay unknown.
void Communicators::made_all(Call& call) {
  made_.clear();
  Communicator made;
  made.made_by = call.id;
  made.ranks = number(call, Role::ranks);
  auto count = static_cast<std::size_t>(std::max(made.ranks.value_or(0), 0));
  auto handles = call.outs.first(std::min(call.outs.size(), count));
  made.identity = identity_of_all(call, handles);
  for (std::size_t rank = 0; rank < handles.size(); rank++) {
    const Known* before = known(call.pid, handles[rank]);
    bool is_twice = before && before->communicator->made_by == call.id;  // so these are no handles
    if (!handles[rank] || is_twice) continue;
    made.rank = static_cast<std::int32_t>(rank);
    made.device = device_of_rank(call, rank);
    if (Known* of = add(call.pid, handles[rank], made)) made_.push_back(of->communicator.get());
  }
  if (made_.empty()) return;
  call.communicator = made_.front();
  call.also_made = std::span(made_).subspan(1);
}

// What the program asks of NCCL says it of a communicator that was there before the trace, too.
void Communicators::told(Known& of, const Call& call) {
  if (call.outs.empty()) return;
  auto answer = static_cast<std::int32_t>(call.outs[0]);
  Communicator& known = *of.communicator;
  std::optional<std::int32_t>& field = call.function->op == Op::get_rank    ? known.rank
                                       : call.function->op == Op::get_ranks ? known.ranks
                                                                            : known.device;
  if (field == answer) return;
  field = answer;
  known.version++;
}

// Some of what was given to the process's communicators may be missing.
void Communicators::records_lost(ThreadId thread) {
  groups_.erase(thread);
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return;
  for (auto& [handle, known] : process->second) {
    if (known.communicator->lost) continue;
    known.communicator->lost = true;
    known.communicator->version++;
  }
}

void Communicators::process_gone(std::uint32_t pid) {
  std::erase_if(groups_, [&](const auto& group) { return group.first.pid == pid; });
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  for (const auto& [handle, known] : process->second) kept_ -= 1 + known.pairs.size();
  processes_.erase(process);
}

}  // namespace cudabpf
