#include "correlate/learners/gpu_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "correlate/graphs/graph_calls.hpp"  // what a call issues
#include "util/saturating.hpp"

namespace cudabpf {

namespace {

constexpr std::uint64_t NEVER = std::numeric_limits<std::uint64_t>::max();
// A record may become readable a little later than its time says.
constexpr std::uint64_t SETTLED_NS = 50'000'000;
// How long to wait for a call to return: it may have been left by longjmp.
constexpr std::uint64_t MAX_CALL_NS = 10'000'000'000;
// The largest difference at which a GPU's time and a call's still count as equal.
constexpr std::uint64_t CLOCKS_DIFFER_NS = 2'000;
// How many calls to search for a match. Every call skipped led to no operation.
constexpr std::size_t MAX_LOOKED_AT = 1 << 12;

Op direction_of(std::uint32_t kind) {
  // CUpti_ActivityMemcpyKind
  constexpr Op KINDS[] = {Op::none, Op::HtoD, Op::DtoH, Op::HtoA, Op::AtoH, Op::AtoA,
                          Op::AtoD, Op::DtoA, Op::DtoD, Op::HtoH, Op::peer};
  return kind < std::size(KINDS) ? KINDS[kind] : Op::none;
}

GpuOperation::Op op_of(std::uint16_t op) {
  switch (op) {
    case abi::CB_GPU_COPY:
      return GpuOperation::Op::copy;
    case abi::CB_GPU_SET:
      return GpuOperation::Op::set;
    case abi::CB_GPU_GRAPH:
      return GpuOperation::Op::graph;
    default:
      return GpuOperation::Op::kernel;
  }
}

// 130001 is 13.0.1; before 13.0, versions count up.
std::string version_text(std::uint32_t version) {
  constexpr std::pair<std::uint32_t, const char*> COUNTED[] = {
      {19, "12.0"}, {20, "12.2"}, {21, "12.3"}, {22, "12.4"},
      {23, "12.5"}, {24, "12.6"}, {26, "12.8"}, {27, "12.9"}};
  if (version >= 10000)
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  for (auto [number, text] : COUNTED)
    if (number == version) return text;
  return version ? fmt::format("API {}", version) : "";
}

bool is_cut(const KernelName& name) { return name.mangled.ends_with("…"); }

// For a call that copies several pieces of memory, the size is that of all, or missing.
bool copies_several(const Function& function) {
  return function.name.find("Batch") != std::string_view::npos;
}

}  // namespace

bool issues_gpu_operation(const Function& function) { return function.meaning.measured; }

void GpuOperations::on_record(const Record& record) {
  const abi::cb_head& head = *record.head;
  OfProcess& process = processes_[head.pid];
  switch (head.kind) {
    case abi::CB_GPU_TIMES:
      timed(record);
      break;
    case abi::CB_GPU_WINDOW:
      stepped(record);
      break;
    case abi::CB_GPU_NAME:
      if (bounds_.has_memory(Kept::kernel_names, process.names.size()))
        process.names[record.handle] =
            names_.named({record.text, (head.flags & abi::CB_STRING_CUT) != 0});
      break;
    default:
      add(record);
  }
}

void GpuOperations::timed(const Record& record) {
  const abi::cb_gpu_times& says = *record.gpu_times;
  OfProcess& process = processes_[record.head->pid];
  bool are_there = says.times_of != 0;
  process.timed |= are_there;
  if (are_there && says.period) process.windows.emplace();
  GpuTimes times;
  times.ts = trace_.ts_of(record.head->ts);
  times.pid = record.head->pid;
  times.version = version_text(says.version);
  times.whole_graphs = says.times_of == abi::CB_GPU_GRAPHS;
  times.window_ns = says.window;
  times.period_ns = says.period;
  (are_there ? times.library : times.why_not) = std::string(record.text);
  trace_.sink().gpu_times(times);
}

void GpuOperations::stepped(const Record& record) {
  OfProcess& process = processes_[record.head->pid];
  if (!process.windows) return;
  auto step = static_cast<abi::cb_gpu_window_step>(record.gpu_window->step);
  auto closed = process.windows->step(step, record.head->ts);
  if (!closed || trace_.is_over_at(closed->open)) return;
  trace_.sink().gpu_window(
      {trace_.ts_of(closed->open), closed->closing - closed->open, record.head->pid});
}

void GpuOperations::add(const Record& record) {
  OfProcess& process = processes_[record.head->pid];
  bool ends = record.gpu_batch != nullptr;
  Lane* lane = lane_of(process, ends ? record.gpu_batch->lane : record.gpu_operation->lane);
  std::uint32_t number = ends ? record.gpu_batch->batch : record.gpu_operation->batch;
  if (!lane || number < lane->next) return;  // only a hostile process repeats one
  if (!bounds_.has_memory(Kept::gpu_operations, waiting_operations_)) {
    bounds_.left_out(Kept::gpu_operations);
    lane->whole = false;
    return;
  }
  auto [at, is_new] = lane->batches.try_emplace(number);
  waiting_operations_ += is_new;
  if (ends) {
    at->second.end = *record.gpu_batch;
  } else {
    const abi::cb_gpu_operation& work = *record.gpu_operation;
    at->second.operations.push_back(work);
    std::uint64_t began = work.began ? work.began : NEVER;
    at->second.last_began = std::max(at->second.last_began, began);
    waiting_operations_++;
  }
}

GpuOperations::Lane* GpuOperations::lane_of(OfProcess& process, std::uint32_t number) {
  auto known = process.lanes.find(number);
  if (known != process.lanes.end()) return &known->second;
  if (!bounds_.has_memory(Kept::threads, process.lanes.size())) {
    bounds_.left_out(Kept::threads);
    return nullptr;
  }
  return &process.lanes[number];
}

GpuOperations::IssuingThread& GpuOperations::thread_of(OfProcess& process, std::uint32_t tid,
                                                       std::uint64_t ts) {
  auto known = process.by_tid.find(tid);
  if (known != process.by_tid.end()) return *known->second;
  process.threads.push_back({tid, ts, true, {}, 0});
  process.by_tid.emplace(tid, std::prev(process.threads.end()));
  return process.threads.back();
}

// The thread that had the id when the lane began: within its first issuing call, or within an
// earlier one that was captured into a graph.
GpuOperations::IssuingThread* GpuOperations::thread_of(OfProcess& process,
                                                       const abi::cb_gpu_batch& batch) {
  IssuingThread* found = nullptr;
  for (IssuingThread& thread : process.threads)
    if (thread.tid == batch.thread && (!found || thread.since <= batch.since)) found = &thread;
  return found;
}

void GpuOperations::called(const Call& call, std::uint64_t begin, std::uint64_t end) {
  const Function& function = *call.function;
  OfProcess& process = processes_[call.pid];
  IssuingCall issuing;
  issuing.graph = function.launches_graph();
  GraphOperation work = issuing.graph ? GraphOperation() : work_of_call(call);
  // In windows, copies and fills are not reported.
  if (process.windows && !issuing.graph && work.what != NodeWork::kernel) return;
  IssuingThread& thread = thread_of(process, call.tid, begin);
  if (!bounds_.has_memory(Kept::gpu_operations, waiting_calls_)) {
    bounds_.left_out(Kept::gpu_operations, thread.calls.size() + 1);
    counts_.calls++;
    give_up(thread, Unjoined::not_reported, thread.calls.size());
    counts_.unjoined[static_cast<std::size_t>(Unjoined::not_reported)]++;
    thread.whole = false;
    return;
  }
  issuing.id = call.id;
  issuing.ts = begin;
  issuing.end = end;
  issuing.function = &function;
  issuing.kernel = work.kernel;
  issuing.size = work.size;
  issuing.stream = call.details.stream;
  issuing.has_dims = work.has_dims;
  issuing.grid = work.grid;
  issuing.block = work.block;
  issuing.what = work.what;
  issuing.counted = !process.windows;
  thread.calls.push_back(issuing);
  counts_.calls += issuing.counted;
  waiting_calls_++;
}

// CUPTI may or may not record what a call submits while a window opens or closes: such a call
// counts if it does.
void GpuOperations::leave_out_calls_outside(OfProcess& process, std::uint64_t ended_before) {
  for (IssuingThread& thread : process.threads) {
    std::size_t answered = 0;
    while (answered < thread.sorted && thread.calls[answered].end < process.windows->oldest())
      answered++;
    give_up(thread, Unjoined::not_reported, answered);
    auto from = thread.calls.begin() + static_cast<std::ptrdiff_t>(thread.sorted), to = from;
    auto kept = from;
    for (; to != thread.calls.end() && to->end < ended_before; ++to) {
      auto submitted = process.windows->submitted(to->ts, to->end);
      if (submitted == GpuWindows::Submitted::outside) continue;
      to->counted = submitted == GpuWindows::Submitted::inside;
      counts_.calls += to->counted;
      *kept++ = *to;
    }
    thread.sorted += static_cast<std::size_t>(kept - from);
    waiting_calls_ -= static_cast<std::size_t>(to - kept);
    thread.calls.erase(kept, to);
  }
}

void GpuOperations::records_lost(ThreadId thread) {
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return;
  auto found = process->second.by_tid.find(thread.tid);
  if (found != process->second.by_tid.end()) found->second->whole = false;
}

std::uint64_t GpuOperations::issuing_since(ThreadId thread) const {
  std::uint64_t since = NEVER;
  const CallStack* stack = open_.find(thread);
  if (!stack) return since;
  stack->each([&](const Frame& frame) {
    if (!frame.passed && issues_gpu_operation(*frame.function)) since = std::min(since, frame.ts);
  });
  return since;
}

void GpuOperations::settle(std::uint64_t read_until) {
  std::uint64_t before = read_until > SETTLED_NS ? read_until - SETTLED_NS : 0;
  for (auto& [pid, process] : processes_) {
    if (process.windows) leave_out_calls_outside(process, before);
    settle(pid, process, before);
  }
}

void GpuOperations::settle(std::uint32_t pid, OfProcess& process, std::uint64_t reported_before) {
  for (auto& [number, lane] : process.lanes) {
    while (!lane.batches.empty()) {
      auto first = lane.batches.begin();
      if (first->first != lane.next || !first->second.end) break;
      const Batch& batch = first->second;
      std::uint64_t reported = batch.end->head.ts;
      if (reported > reported_before) break;
      std::uint64_t since = issuing_since({pid, batch.end->thread});
      bool may_have_issued =
          since < reported && since <= saturating_sum(batch.last_began, CLOCKS_DIFFER_NS);
      if (may_have_issued && reported_before - reported < MAX_CALL_NS) break;
      join(pid, process, lane, first->second);
      waiting_operations_ -= 1 + first->second.operations.size();
      lane.batches.erase(first);
      lane.next++;
    }
  }
}

void GpuOperations::join(std::uint32_t pid, OfProcess& process, Lane& lane, const Batch& batch) {
  IssuingThread* thread = nullptr;
  if (batch.end) {
    thread = thread_of(process, *batch.end);
    counts_.invalid += batch.end->lost;
    counts_.clock_error_ns =
        std::max<std::uint64_t>(counts_.clock_error_ns, batch.end->clock_error);
    if (batch.end->lost || batch.end->operations != batch.operations.size()) lane.whole = false;
    if (thread) skip_calls_before(*thread, batch.end->asked);
  }
  for (const abi::cb_gpu_operation& work : batch.operations) {
    if (trace_.is_over_at(work.began)) continue;
    if (!work.correlation || work.correlation != lane.correlation) {
      find_call(process, lane, thread, work);
      lane.correlation = work.correlation;
    }
    if (work.began)
      emit(pid, process, lane, work);
    else
      counts_.invalid++;
  }
}

// A batch's first operation was submitted while its thread asked for room: by the last call that
// had begun by then, or a later one.
void GpuOperations::skip_calls_before(IssuingThread& thread, std::uint64_t asked) {
  std::size_t earlier = 0;
  while (earlier + 1 < thread.calls.size() && thread.calls[earlier + 1].ts <= asked) earlier++;
  give_up(thread, Unjoined::no_work, earlier);
}

void GpuOperations::find_call(const OfProcess& process, Lane& lane, IssuingThread* thread,
                              const abi::cb_gpu_operation& work) {
  lane.last.reset();
  counts_.operations++;
  lane.why_not = Unjoined::no_call;
  if (!work.correlation) {
    lane.why_not = Unjoined::gpu_launched;
  } else if (!lane.whole || (thread && !thread->whole)) {
    lane.why_not = Unjoined::lost;
  } else if (thread) {
    std::size_t most = std::min(thread->calls.size(), MAX_LOOKED_AT);
    for (std::size_t i = 0; i < most; i++) {
      const IssuingCall& issuing = thread->calls[i];
      if (work.began && issuing.ts > work.began + CLOCKS_DIFFER_NS) break;
      if (!fits(process, issuing, work)) continue;
      lane.last = issuing;
      lane.why_not = Unjoined::none;
      counts_.joined++;
      counts_.answered++;
      counts_.calls += !issuing.counted;
      give_up(*thread, Unjoined::no_work, i);
      remove_first(*thread, 1);
      return;
    }
  }
  counts_.unjoined[static_cast<std::size_t>(lane.why_not)]++;
}

bool GpuOperations::fits(const OfProcess& process, const IssuingCall& issuing,
                         const abi::cb_gpu_operation& work) const {
  auto op = op_of(work.head.function);
  if (issuing.graph || work.graph || op == GpuOperation::Op::graph)
    return issuing.graph && (work.graph || op == GpuOperation::Op::graph);
  if (op != GpuOperation::Op::kernel) {
    if (issuing.what != (op == GpuOperation::Op::copy ? NodeWork::copy : NodeWork::set))
      return false;
    return !issuing.size || *issuing.size == work.size || copies_several(*issuing.function);
  }
  if (issuing.what != NodeWork::kernel) return false;
  if (issuing.has_dims && (issuing.grid != Dim3{work.grid[0], work.grid[1], work.grid[2]} ||
                           issuing.block != Dim3{work.block[0], work.block[1], work.block[2]}))
    return false;
  auto known = process.names.find(work.name);
  const KernelName* name = known == process.names.end() ? nullptr : known->second;
  if (!name || !issuing.kernel || name == issuing.kernel) return true;
  return is_cut(*name) || is_cut(*issuing.kernel) || name->mangled == issuing.kernel->mangled;
}

void GpuOperations::emit(std::uint32_t pid, const OfProcess& process, const Lane& lane,
                         const abi::cb_gpu_operation& work) {
  GpuOperation out;
  out.op = op_of(work.head.function);
  out.ts = trace_.ts_of(work.began);
  out.duration = work.ended > work.began ? work.ended - work.began : 0;
  out.pid = pid;
  out.device = work.device;
  out.queue = work.stream;
  out.why_not = lane.why_not;
  if (lane.last) {
    out.call = lane.last->id;
    // Without an argument for it, it is the default stream.
    out.stream = lane.last->stream.value_or(0);
  }
  if (out.op == GpuOperation::Op::kernel) {
    auto name = process.names.find(work.name);
    if (name != process.names.end()) out.kernel = name->second;
    out.grid = {work.grid[0], work.grid[1], work.grid[2]};
    out.block = {work.block[0], work.block[1], work.block[2]};
    out.shared = work.shared;
  } else if (out.op != GpuOperation::Op::graph) {
    out.size = work.size;
    out.direction = direction_of(work.direction);
  }
  if (work.graph && out.op != GpuOperation::Op::graph) out.node = work.node;
  trace_.sink().gpu_operation(out);
}

// Gives up on the first `count` calls.
void GpuOperations::give_up(IssuingThread& thread, Unjoined why, std::size_t count) {
  auto first = thread.calls.begin();
  auto counted = std::count_if(first, first + static_cast<std::ptrdiff_t>(count),
                               [](const IssuingCall& call) { return call.counted; });
  counts_.unjoined[static_cast<std::size_t>(why)] += static_cast<std::uint64_t>(counted);
  remove_first(thread, count);
}

void GpuOperations::remove_first(IssuingThread& thread, std::size_t count) {
  waiting_calls_ -= count;
  thread.sorted -= std::min(thread.sorted, count);
  thread.calls.erase(thread.calls.begin(),
                     thread.calls.begin() + static_cast<std::ptrdiff_t>(count));
}

void GpuOperations::thread_gone(ThreadId thread) {
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return;
  process->second.by_tid.erase(thread.tid);
  // A thread with no calls left needs no place.
  constexpr std::size_t MANY = 256;
  if (process->second.threads.size() < MANY) return;
  std::erase_if(process->second.threads, [&](const IssuingThread& one) {
    return one.calls.empty() && !process->second.by_tid.contains(one.tid);
  });
}

void GpuOperations::end(std::uint32_t pid, OfProcess& process) {
  if (process.windows) leave_out_calls_outside(process, NEVER);
  settle(pid, process, NEVER);
  // Batches that were lost, or never completely reported, stand before what is left.
  for (auto& [number, lane] : process.lanes) {
    lane.whole = false;
    for (const auto& [place, batch] : lane.batches) {
      join(pid, process, lane, batch);
      waiting_operations_ -= 1 + batch.operations.size();
    }
  }
  for (IssuingThread& thread : process.threads)
    give_up(thread, Unjoined::not_reported, thread.calls.size());
}

void GpuOperations::process_gone(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  end(pid, process->second);
  processes_.erase(process);
}

void GpuOperations::finished() {
  for (auto& [pid, process] : processes_) end(pid, process);
  processes_.clear();
}

void GpuOperations::add_names(std::unordered_set<const KernelName*>& to) const {
  for (const auto& [pid, process] : processes_) {
    for (const auto& [number, name] : process.names) to.insert(name);
    for (const IssuingThread& thread : process.threads)
      for (const IssuingCall& issuing : thread.calls) to.insert(issuing.kernel);
  }
}

}  // namespace cudabpf
