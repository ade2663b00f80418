#include "correlate/call_pairing.hpp"

#include <algorithm>

#include "cudabpf/describe.hpp"

namespace cudabpf {

// The stack that an entry or a return belongs to.
CallStack& CallPairing::stack_for(const abi::cb_head& head) {
  ThreadId thread = thread_of(head);
  CallStack* stack = open_.find(thread);
  if (!stack) {
    if (!open_.has_memory()) make_room_for_threads();
    if (!processes_.known(thread.pid)) processes_.announce(thread.pid, trace_.ts_of(head.ts));
    stack = &open_.add(thread);
  }
  if (!stack->same_drops(head.drops)) {
    learners_.calls_lost(thread.pid);
    learners_.records_lost(thread);
  }
  return *stack;
}

void CallPairing::fill_frame(Frame& frame, const Record& record, const Function& function) {
  const abi::cb_head& head = *record.head;
  frame.id = next_id_++;
  frame.ts = head.ts;
  frame.read_fault = head.flags & abi::CB_READ_FAULT;
  frame.string_cut = head.flags & abi::CB_STRING_CUT;
  frame.nwords = static_cast<std::uint8_t>(record.words.size());
  std::copy(record.words.begin(), record.words.end(), frame.words.begin());
  frame.has_text = record.has_text;
  frame.payload = record.payload;
  frame.stack_number = record.stack;
  if (record.has_text) frame.text.assign(record.text);
  frame.details = describe_entry(function, record.words, record.structure);
  frame.structure = record.structure;
  frame.devices = listed_devices(function, record.structure);
}

void CallPairing::entered(const Record& record, const Function& function) {
  const abi::cb_head& head = *record.head;
  ThreadId thread = thread_of(head);
  CallStack& stack = stack_for(head);
  for (std::size_t over = stack.over_at_entry(head.sp, head.drops); over > 0; over--)
    end_top(stack, thread, Ending::return_lost);
  constexpr std::size_t MAX_DEPTH = 64;
  if (stack.depth() &&
      (stack.depth() == MAX_DEPTH || !bounds_.has_memory(Kept::open_calls, open_calls_))) {
    bounds_.left_out(Kept::open_calls, stack.depth());
    give_up(stack, thread);
  }
  // The calls that it passes may never be seen to return, so their results stay unknown.
  if (stack.pass(head.sp)) learners_.calls_lost(head.pid);
  open_calls_++;
  Frame& frame = stack.push(head.sp, head.drops, function);
  fill_frame(frame, record, function);
  learners_.began(thread, frame);
  if (is_silent(function))
    end_top(stack, thread, Ending::silent);
  else if (options_.entry_only(function))
    end_top(stack, thread, Ending::entry_only);
  else if (head.flags & abi::CB_RETURN_UNSEEN)
    end_top(stack, thread, Ending::return_lost);
}

void CallPairing::returned(const Record& record, const Function& function) {
  const abi::cb_head& head = *record.head;
  ThreadId thread = thread_of(head);
  CallStack& stack = stack_for(head);
  int above = stack.frames_above(head.sp, &function);
  if (above < 0) {
    while (stack.top_is_over(head.sp)) end_top(stack, thread, Ending::return_lost);
    add_orphan(record, function);
    return;
  }
  for (; above > 0; above--) end_top(stack, thread, Ending::return_lost);
  if (head.flags & abi::CB_OUT_LOST) {
    outs_missed_++;
    learners_.calls_lost(head.pid);  // practically so, since it is not known what it returned
  }
  if (nothing_lost_between(stack.top().drops, head.drops)) {
    stack.top_returned();
    end_top(stack, thread, Ending::returned, &record);
  } else {
    end_top(stack, thread, Ending::return_lost);
    add_orphan(record, function);
  }
}

// The call as far as it is known while it is open.
Call CallPairing::call_of(const Frame& frame, ThreadId of) const {
  Call call;
  call.id = frame.id;
  call.parent = frame.parent;
  call.within = frame.within;
  call.ts = trace_.ts_of(frame.ts);
  call.pid = of.pid;
  call.tid = of.tid;
  call.function = frame.function;
  call.read_fault = frame.read_fault;
  call.string_cut = frame.string_cut;
  call.words = {frame.words.data(), frame.nwords};
  call.text = frame.text;
  call.has_text = frame.has_text;
  call.details = frame.details;
  call.devices = frame.devices;
  call.payload = frame.payload;
  call.kernel = frame.kernel;
  call.product = frame.product ? &*frame.product : nullptr;
  call.communicator = frame.communicator.get();
  call.sequence = frame.sequence;
  call.group = frame.group;
  call.range = frame.range.get();
  call.stack = frame.stack.get();
  call.holder = frame.holder;
  call.ioctls = frame.ioctls;
  call.ioctl_time = frame.ioctl_time;
  return call;
}

void CallPairing::end_top(CallStack& stack, ThreadId of, Ending ending, const Record* ret) {
  const Frame& frame = stack.top();
  Call call = call_of(frame, of);
  call.unfinished = ending == Ending::unfinished;
  call.return_lost = ending == Ending::return_lost;
  if (ret) {
    call.has_return = true;
    call.result = ret->head->result;
    // A process that records itself may report any time.
    call.duration = ret->head->ts > frame.ts ? ret->head->ts - frame.ts : 0;
    call.outs = ret->words;
    call.read_fault |= (ret->head->flags & abi::CB_READ_FAULT) != 0;
    describe_outs(*frame.function, call.words, call.outs, call.details);
  }
  if (call.return_lost) learners_.calls_lost(of.pid);
  learners_.ended(stack, call);
  if (ending != Ending::silent) trace_.add(call);
  stack.pop();
  open_calls_--;
}

// Gives up on open calls, whose ends are not known.
void CallPairing::give_up(CallStack& stack, ThreadId of) {
  while (stack.depth()) end_top(stack, of, Ending::return_lost);
}

bool CallPairing::is_silent(const Function& function) const {
  return function.names == NamesEffect::forget &&
         std::find(options_.silent.begin(), options_.silent.end(), &function) !=
             options_.silent.end();
}

// Only the return was seen: the arguments are unknown, the result is known.
void CallPairing::add_orphan(const Record& record, const Function& function) {
  const abi::cb_head& head = *record.head;
  if (trace_.is_over_at(head.ts)) return;
  Call call;
  call.id = next_id_++;
  call.ts = trace_.ts_of(head.ts);
  call.pid = head.pid;
  call.tid = head.tid;
  call.function = &function;
  call.result = head.result;
  call.entry_lost = true;
  call.read_fault = head.flags & abi::CB_READ_FAULT;
  call.outs = record.words;
  call.details.op = function.op;
  describe_outs(function, {}, call.outs, call.details);
  learners_.calls_lost(head.pid);
  if (call.result == 0) learners_.orphaned(call);
  trace_.add(call);
}

void CallPairing::thread_exited(const abi::cb_head& head) {
  ThreadId thread = thread_of(head);
  CallStack* stack = open_.find(thread);
  if (stack && !stack->same_drops(head.drops)) learners_.calls_lost(head.pid);
  end_thread(thread, head.drops);
  learners_.thread_gone(thread);
}

// The thread or the trace has ended. Calls still open never returned or, if any record of the
// thread has been lost since they began, perhaps returned unseen.
void CallPairing::end_thread(ThreadId thread, std::optional<std::uint32_t> drops) {
  learners_.thread_ends(thread);
  CallStack* stack = open_.find(thread);
  if (!stack) return;
  if (!drops && options_.drops_of && stack->depth()) drops = options_.drops_of(thread);
  while (stack->depth()) {
    const Frame& frame = stack->top();
    bool seen = nothing_lost_between(frame.drops, drops.value_or(frame.drops)) && !frame.passed;
    end_top(*stack, thread, seen ? Ending::unfinished : Ending::return_lost);
  }
  open_.forget(thread);
}

void CallPairing::end_process(std::uint32_t pid, LastThread last) {
  for (auto thread = open_.first({pid, 0}); thread && thread->pid == pid;
       thread = open_.first({pid, 0}))
    end_thread(*thread, last.tid == thread->tid ? std::optional(last.drops) : std::nullopt);
  learners_.process_gone(pid);
}

void CallPairing::finish() {
  while (auto thread = open_.first()) end_thread(*thread);
  learners_.finished();
}

// One whose return may have been lost, or that longjmp may have left, may have ended.
void CallPairing::each_open(std::uint64_t until, const OpenCallsNow::Visit& visit) const {
  open_.each_thread([&](ThreadId thread, const CallStack& stack) {
    if (!stack.depth()) return;
    std::optional<std::uint32_t> drops;
    if (options_.drops_of) drops = options_.drops_of(thread);
    stack.each([&](const Frame& frame) {
      if (frame.passed || !nothing_lost_between(frame.drops, drops.value_or(frame.drops))) return;
      Call call = call_of(frame, thread);
      call.unfinished = true;
      visit(call, until > frame.ts ? until - frame.ts : 0);
    });
  });
}

// If too many threads are inside a call, their stacks go, too.
void CallPairing::make_room_for_threads() {
  if (open_.forget_idle()) return;
  open_.each_thread([this](ThreadId thread, CallStack& stack) {
    bounds_.left_out(Kept::threads);
    give_up(stack, thread);
  });
  open_.forget_all();
}

}  // namespace cudabpf
