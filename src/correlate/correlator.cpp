#include "correlate/correlator.hpp"

#include <algorithm>
#include <limits>

#include "cudabpf/describe.hpp"
#include "cudabpf/xid.hpp"

namespace cudabpf {

Correlator::Correlator(Sink& sink, FunctionOf function_of, TracedProcesses::Lookup lookup,
                       Options options)
    : sink_(sink),
      function_of_(std::move(function_of)),
      options_(std::move(options)),
      bounds_(options_.limits),
      processes_(sink, std::move(lookup)),
      names_(bounds_),
      allocations_(options_.coverage.memory, bounds_),
      call_devices_(bounds_),
      graphs_(options_.coverage.graphs, {options_.limits.of(Kept::graph_nodes),
                                         [this] { bounds_.left_out(Kept::graph_nodes); }}),
      driver_calls_(options_.driver_device, options_.driver_version, bounds_,
                    [this](const DriverCall& call) { emit_driver(call); }),
      gpu_errors_([this](const GpuError& error) { sink_.gpu_error(error); }),
      gpu_works_(sink_, names_, bounds_, options_.begin_ns) {}

std::uint64_t Correlator::since_begin(std::uint64_t ts) const {
  return ts > options_.begin_ns ? ts - options_.begin_ns : 0;
}

void Correlator::on_record(const Record& record) {
  switch (record.head->kind) {
    case abi::CB_ENTRY:
      on_entry(record);
      break;
    case abi::CB_RETURN:
      on_return(record);
      break;
    case abi::CB_NAME:
      make_room_for_names();
      names_.read_from_handle(record.head->pid, record.handle,
                              {record.text, (record.head->flags & abi::CB_STRING_CUT) != 0},
                              record.head->ts);
      break;
    case abi::CB_DRIVER:
    case abi::CB_DRIVER_RETURN:
      on_driver(record);
      break;
    case abi::CB_INTERRUPT:
      if (record.head->ts <= stopped_ns_)
        driver_calls_.interrupted(record, since_begin(record.interrupt->began),
                                  since_begin(record.head->ts));
      break;
    case abi::CB_XID:
      on_xid(record);
      break;
    case abi::CB_GPU_TIMES:
    case abi::CB_GPU_NAME:
    case abi::CB_GPU_WORK:
    case abi::CB_GPU_BATCH:
      make_room_for_names();
      gpu_works_.on_record(record, stopped_ns_);
      break;
    case abi::CB_THREAD_EXIT:
      if (record.head->ts <= stopped_ns_) driver_calls_.thread_ended(*record.head);
      on_thread_exit(*record.head);
      break;
    default:
      on_process(record);
      break;
  }
}

CallStack& Correlator::stack_of(ThreadId thread, std::uint64_t ts) {
  if (last_stack_ && last_thread_ == thread) return *last_stack_;
  if (!bounds_.has_room(Kept::threads, threads_.size()) && !threads_.contains(thread))
    make_room_for_threads();
  auto [at, is_new] = threads_.try_emplace(thread);
  if (is_new && !processes_.known(thread.pid)) processes_.announce(thread.pid, since_begin(ts));
  last_thread_ = thread;
  last_stack_ = &at->second;
  return at->second;
}

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
    if (graph_action(function) == GraphAction::launch) call.graph_unknown = GraphUnknown::lost;
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

// An operation belongs to the call that its thread is making.
void Correlator::on_driver(const Record& record) {
  const abi::cb_head& head = *record.head;
  std::uint64_t ts = since_begin(head.ts);
  if (head.kind == abi::CB_DRIVER_RETURN) return driver_calls_.ends(record, ts);
  if (head.ts > stopped_ns_) return;
  auto stack = threads_.find(thread_of(head));
  const Frame* call = stack != threads_.end() ? stack->second.innermost() : nullptr;
  if (!processes_.known(head.pid)) processes_.announce(head.pid, ts);
  driver_calls_.begins(record, ts, call ? call->id : 0);
}

void Correlator::on_xid(const Record& record) {
  if (record.head->ts > stopped_ns_) return;
  GpuError error = describe_xid(record.xid->number, fixed_text(record.xid->device),
                                fixed_text(record.xid->message));
  error.ts = since_begin(record.head->ts);
  error.message_cut = record.head->flags & abi::CB_STRING_CUT;
  gpu_errors_.traced(std::move(error));
}

void Correlator::emit_driver(const DriverCall& call) {
  if (call.op == DriverCall::Op::ioctl && call.call)
    if (auto stack = threads_.find({call.pid, call.tid}); stack != threads_.end())
      stack->second.ioctl_made(call.call, call.duration);
  counts_.add(call);
  sink_.driver_call(call);
}

// The thread or the trace has ended. Calls still open never returned or, if any record of the
// thread has been lost since they began, perhaps returned unseen.
void Correlator::end_thread(ThreadId thread, std::optional<std::uint32_t> drops) {
  driver_calls_.thread_gone(thread);
  auto at = threads_.find(thread);
  if (at == threads_.end()) return;
  CallStack& stack = at->second;
  if (!drops && options_.drops_of && stack.depth()) drops = options_.drops_of(thread);
  while (stack.depth()) {
    const Frame& frame = stack.top();
    bool seen = nothing_lost_between(frame.drops, drops.value_or(frame.drops)) && !frame.passed;
    emit_top(stack, thread, seen ? Ending::unfinished : Ending::return_lost);
  }
  call_devices_.thread_gone(thread.pid, thread.tid);
  if (last_stack_ == &stack) last_stack_ = nullptr;
  threads_.erase(at);
}

void Correlator::on_thread_exit(const abi::cb_head& head) {
  auto stack = threads_.find(thread_of(head));
  if (stack != threads_.end() && !stack->second.same_drops(head.drops)) calls_lost(head.pid);
  call_devices_.thread_gone(head.pid, head.tid);
  end_thread(thread_of(head), head.drops);
  gpu_works_.thread_gone(head.pid, head.tid);
}

// Threads outside any call need no stack. If too many are inside one, their stacks go, too.
void Correlator::make_room_for_threads() {
  last_stack_ = nullptr;
  auto is_idle = [](const auto& item) { return item.second.depth() == 0; };
  std::erase_if(threads_, is_idle);
  if (bounds_.has_room(Kept::threads, 2 * threads_.size())) return;
  for (auto& [thread, stack] : threads_) {
    bounds_.left_out(Kept::threads);
    end_calls(stack, thread);
  }
  threads_.clear();
}

void Correlator::make_room_for_names() {
  if (!names_.want_room()) return;
  std::unordered_set<const KernelName*> used;
  for (const auto& [thread, stack] : threads_)
    stack.each([&](const Frame& frame) { used.insert(frame.kernel); });
  graphs_.add_names(used);
  gpu_works_.add_names(used);
  names_.forget_unused(used);
}

// Ends a process's calls and forgets what was known about it.
void Correlator::end_process(std::uint32_t pid, LastThread last) {
  auto of_process = [&] { return threads_.lower_bound({pid, 0}); };
  for (auto at = of_process(); at != threads_.end() && at->first.pid == pid; at = of_process())
    end_thread(at->first, last.tid == at->first.tid ? std::optional(last.drops) : std::nullopt);
  driver_calls_.process_gone(pid);
  names_.process_gone(pid);
  allocations_.process_gone(pid);
  call_devices_.process_gone(pid);
  graphs_.process_gone(pid);
  gpu_works_.process_gone(pid);
}

void Correlator::on_process(const Record& record) {
  const abi::cb_head& head = *record.head;
  if (head.ts > stopped_ns_) return;
  if (processes_.is_repeated(record)) return;
  if (head.kind == abi::CB_EXIT) driver_calls_.thread_ended(head);
  // An exec ends every other thread and leaves the old program's calls and handles behind. The pid
  // of a fork or a start may have had an earlier owner whose exit was lost.
  end_process(head.pid,
              head.kind == abi::CB_EXIT ? LastThread{head.tid, head.drops} : LastThread{});
  bool from_its_beginning = head.kind == abi::CB_FORK || head.kind == abi::CB_EXEC ||
                            record.process->start_time >= options_.begin_boottime_ns;
  if (head.kind != abi::CB_EXIT && from_its_beginning) {
    allocations_.process_began(head.pid);
    graphs_.process_began(head.pid);
  }
  processes_.on_record(record, since_begin(head.ts));
}

void Correlator::settle_gpu_works(std::uint64_t read_until) {
  gpu_works_.settle(read_until, [this](std::uint32_t pid, std::uint32_t tid) {
    auto since = std::numeric_limits<std::uint64_t>::max();
    auto at = threads_.find({pid, tid});
    if (at == threads_.end()) return since;
    at->second.each([&](const Frame& frame) {
      if (!frame.passed && asks_gpu(*frame.function)) since = std::min(since, frame.ts);
    });
    return since;
  });
}

void Correlator::forget_process(std::uint32_t pid) {
  end_process(pid, {});
  processes_.forget(pid);
}

void Correlator::finish() {
  gpu_errors_.settle();
  while (!threads_.empty()) end_thread(threads_.begin()->first);
  gpu_works_.finish();
  driver_calls_.all_gone();
}

}  // namespace cudabpf
