// How entries and returns become calls, and what is learnt from each.
#include <algorithm>

#include "correlate/correlator.hpp"
#include "cudabpf/describe.hpp"

namespace cudabpf {

// The stack that an entry or a return belongs to.
CallStack& Correlator::stack_for(const Record& record) {
  const abi::cb_head& head = *record.head;
  CallStack& stack = stack_of(thread_of(head), head.ts);
  if (!stack.same_drops(head.drops)) {
    calls_lost(head.pid);
    gpu_works_.calls_lost(head.pid, head.tid);
  }
  return stack;
}

void Correlator::fill_frame(Frame& frame, const Record& record, const Function& function) {
  const abi::cb_head& head = *record.head;
  frame.id = next_id_++;
  frame.ts = head.ts;
  frame.function = &function;
  frame.read_fault = head.flags & abi::CB_READ_FAULT;
  frame.string_cut = head.flags & abi::CB_STRING_CUT;
  frame.nwords = static_cast<std::uint8_t>(record.words.size());
  std::copy(record.words.begin(), record.words.end(), frame.words.begin());
  frame.has_text = record.has_text;
  if (record.has_text) frame.text.assign(record.text);
  frame.details = describe_entry(function, record.words, record.structure);
  if (!frame.details.device && options_.coverage.devices)
    frame.details.device =
        call_devices_.device_of(head.pid, head.tid, function, record.words, frame.details);
  // The others are memory handles.
  bool of_kernel =
      frame.details.handle && (function.type == Type::kernel || function.type == Type::graph);
  frame.kernel = of_kernel ? names_.find(head.pid, *frame.details.handle) : nullptr;
  frame.freed = function.type == Type::memory
                    ? allocations_.freeing(head.pid, function, frame.details)
                    : std::nullopt;
  if (frame.details.op == Op::unified) allocations_.infer_direction(head.pid, frame.details);
  if (options_.coverage.ends() && function.type == Type::transfer)
    allocations_.find_devices(head.pid, function, frame.details);
}

void Correlator::on_entry(const Record& record) {
  const abi::cb_head& head = *record.head;
  if (head.ts > stopped_ns_) return;
  const Function* function = function_of_(head.function);
  if (!function) {
    bad_records_++;
    return;
  }
  CallStack& stack = stack_for(record);
  for (std::size_t over = stack.over_at_entry(head.sp, head.drops); over > 0; over--)
    emit_top(stack, thread_of(head), Ending::return_lost);
  constexpr std::size_t MAX_DEPTH = 64;
  if (stack.depth() &&
      (stack.depth() == MAX_DEPTH || !bounds_.has_room(Kept::open_calls, open_calls_))) {
    bounds_.left_out(Kept::open_calls, stack.depth());
    end_calls(stack, thread_of(head));
  }
  // The calls that it passes may never be seen to return, and their results stay unknown.
  if (stack.pass(head.sp)) calls_lost(head.pid);
  open_calls_++;
  fill_frame(stack.push(head.sp, head.drops), record, *function);
  if (is_silent(*function))
    emit_top(stack, thread_of(head), Ending::silent);
  else if (options_.entry_only(*function))
    emit_top(stack, thread_of(head), Ending::entry_only);
  else if (head.flags & abi::CB_RETURN_UNSEEN)
    emit_top(stack, thread_of(head), Ending::return_lost);
}

void Correlator::on_return(const Record& record) {
  const abi::cb_head& head = *record.head;
  const Function* function = function_of_(head.function);
  if (!function) {
    bad_records_++;
    return;
  }
  CallStack& stack = stack_for(record);
  int above = stack.frames_above(head.sp, function);
  if (above < 0) {
    while (stack.top_is_over(head.sp)) emit_top(stack, thread_of(head), Ending::return_lost);
    emit_orphan(record, *function);
    return;
  }
  for (; above > 0; above--) emit_top(stack, thread_of(head), Ending::return_lost);
  if (head.flags & abi::CB_OUT_LOST) {
    outs_missed_++;
    calls_lost(head.pid);  // practically so, since nobody knows what it returned
  }
  if (nothing_lost_between(stack.top().drops, head.drops)) {
    stack.top_returned();
    emit_top(stack, thread_of(head), Ending::returned, &record);
  } else {
    emit_top(stack, thread_of(head), Ending::return_lost);
    emit_orphan(record, *function);
  }
}

void Correlator::emit_top(CallStack& stack, ThreadId of, Ending ending, const Record* ret) {
  const Frame& frame = stack.top();
  Call call;
  call.id = frame.id;
  call.parent = frame.parent;
  call.ts = since_begin(frame.ts);
  call.pid = of.pid;
  call.tid = of.tid;
  call.function = frame.function;
  call.read_fault = frame.read_fault;
  call.string_cut = frame.string_cut;
  call.words = {frame.words.data(), frame.nwords};
  call.text = frame.text;
  call.has_text = frame.has_text;
  call.details = frame.details;
  call.kernel = frame.kernel;
  call.ioctls = frame.ioctls;
  call.ioctl_time = frame.ioctl_time;
  call.unfinished = ending == Ending::unfinished;
  call.return_lost = ending == Ending::return_lost;
  if (ret) {
    call.has_return = true;
    call.result = ret->head->result;
    // A process that records itself may tell any time.
    call.duration = ret->head->ts > frame.ts ? ret->head->ts - frame.ts : 0;
    call.outs = ret->words;
    call.read_fault |= (ret->head->flags & abi::CB_READ_FAULT) != 0;
    describe_outs(*frame.function, call.words, call.outs, call.details);
  }
  call_devices_.follow(call);
  follow_memory(frame, call, call.details);
  if (frame.function->names != NamesEffect::none) follow_names(frame, call);
  if (graphs_.follows(*frame.function))
    graphs_.follow(call, stack.top_is_inside(
                             [](const Function& function) { return concerns_graphs(function); }));
  if (gpu_works_.follows(call.pid) && !call.captured && call.result == 0 &&
      !stack.top_is_inside(asks_gpu))
    gpu_works_.called(call, frame.ts);
  if (ending != Ending::silent) {
    counts_.add(call);
    sink_.call(call);
  }
  stack.pop();
  open_calls_--;
}

// Gives up on open calls, whose ends are not known.
void Correlator::end_calls(CallStack& stack, ThreadId of) {
  while (stack.depth()) emit_top(stack, of, Ending::return_lost);
}

bool Correlator::is_silent(const Function& function) const {
  const auto& silent = options_.coverage.silent;
  return function.names == NamesEffect::forget &&
         std::find(silent.begin(), silent.end(), &function) != silent.end();
}

// Only the return was seen: the arguments are unknown, the result is known.
void Correlator::emit_orphan(const Record& record, const Function& function) {
  const abi::cb_head& head = *record.head;
  if (head.ts > stopped_ns_) return;
  Call call;
  call.id = next_id_++;
  call.ts = since_begin(head.ts);
  call.pid = head.pid;
  call.tid = head.tid;
  call.function = &function;
  call.result = head.result;
  call.entry_lost = true;
  call.read_fault = head.flags & abi::CB_READ_FAULT;
  call.outs = record.words;
  call.details.op = function.op;
  describe_outs(function, {}, call.outs, call.details);
  calls_lost(head.pid);
  if (call.result == 0) {
    if (function.graph == GraphAction::launch) call.graph_unknown = GraphUnknown::lost;
    if (function.type == Type::memory) allocations_.follow(head.pid, function, {}, call.details);
    if (function.names == NamesEffect::learn && !call.outs.empty())
      names_.forget_handle(head.pid, call.outs[0]);
    if (function.names == NamesEffect::forget) {
      names_.forget_handles(head.pid);
      allocations_.context_destroyed(head.pid);
    }
  }
  counts_.add(call);
  sink_.call(call);
}

// Something is missing, so conclusions from the process's calls may be wrong.
void Correlator::calls_lost(std::uint32_t pid) {
  allocations_.calls_lost(pid);
  call_devices_.calls_lost(pid);
  graphs_.calls_lost(pid);
}

void Correlator::follow_memory(const Frame& frame, const Call& call, Details& details) {
  const Function& function = *call.function;
  if (!call.has_return) {
    if (function.type == Type::memory) allocations_.perhaps_freed(call.pid, function, details);
    if (call.return_lost) calls_lost(call.pid);
  } else if (call.result == 0) {
    if (function.type == Type::memory)
      allocations_.follow(call.pid, function, frame.freed, details);
    else if (!call.outs.empty())
      allocations_.follow_addresses(call.pid, function, call.outs);
  } else if (frame.freed) {
    allocations_.stays(call.pid, function, details);
  }
}

// If it is not known whether the call succeeded, names are forgotten as if it had: the next launch
// reads them again.
void Correlator::follow_names(const Frame& frame, const Call& call) {
  if (call.result != 0) return;
  const Function& function = *frame.function;
  auto word = [&](std::size_t i) { return i < frame.nwords ? frame.words[i] : 0; };
  if (function.names == NamesEffect::forget) {
    if (function.type == Type::module) {
      names_.owner_unloaded(call.pid, word(0), frame.ts);
    } else {
      names_.context_destroyed(call.pid, frame.ts);
      allocations_.context_destroyed(call.pid);
    }
    return;
  }
  if (call.outs.empty()) return;
  make_room_for_names();
  // (out handle, module or library, name) or (out function, kernel)
  std::uint64_t ts = frame.ts + call.duration;
  if (function.arguments.size() < 3)
    names_.learned_alias(call.pid, call.outs[0], word(1), ts);
  else if (!frame.has_text)
    names_.forget_handle(call.pid, call.outs[0]);
  else
    names_.learned(call.pid, call.outs[0], {word(1), function.arguments[0].role == Role::function},
                   {frame.text, frame.string_cut}, ts);
}

}  // namespace cudabpf
