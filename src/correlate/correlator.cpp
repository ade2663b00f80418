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
