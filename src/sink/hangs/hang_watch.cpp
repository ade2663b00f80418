#include "sink/hangs/hang_watch.hpp"

#include <algorithm>

#include "cudabpf/call_class.hpp"
#include "util/system/clock.hpp"

namespace cudabpf::hangs {

namespace {

// Calls that wait for others or for the GPU, and may do so for ever. A launch waits where the queue
// is full, a copy to the host for what is before it in its stream.
bool may_hang(const Function& function) {
  if (function.layer() > 0) return true;
  switch (class_of(function)) {
    case CallClass::wait:
    case CallClass::launch:
    case CallClass::to_device:
    case CallClass::to_host:
    case CallClass::copy:
    case CallClass::set:
      return true;
    default:
      return false;
  }
}

// Losses after which a call may be missing from what was seen.
bool hides_calls(Loss reason) {
  switch (reason) {
    case Loss::ring_entry:
    case Loss::ring_return:
    case Loss::late_library:
    case Loss::left_out:
    case Loss::library_changed:
    case Loss::bad_record:
    case Loss::process_unrecorded:
    case Loss::process_inconsistent:
    case Loss::watch_overrun:
      return true;
    default:
      return false;
  }
}

}  // namespace

Doing& HangWatch::doing(std::uint32_t pid) {
  if (doings_.size() >= MAX_PROCESSES && !doings_.contains(pid))
    std::erase_if(doings_, [](const auto& one) { return one.second.gone; });
  Doing& of = doings_[pid];
  of.pid = pid;
  return of;
}

void HangWatch::call(const Call& call) {
  bool launches = call.function->launches_kernel() || call.function->launches_graph();
  if (Positions::concerns(*call.function)) positions_.note(call, false);
  Doing& of = doing(call.pid);
  of.called_ts = std::max(of.called_ts, call.ts + call.duration);
  if (!launches || call.ts < of.launched_ts) return;
  of.launched_ts = call.ts;
  of.kernel = call.kernel                       ? call.kernel->short_name
              : call.function->launches_graph() ? "a graph"
                                                : "";
}

void HangWatch::process(const Process& process) {
  Doing& of = doing(process.pid);
  if (process.op != Process::Op::exit) {
    if (process.op != Process::Op::fork) of = Doing();  // another program, or another's pid
    of.pid = process.pid;
    of.name = process.comm;
    return;
  }
  of.gone = true;
  of.exit_code = process.exit_code;
  of.signal = process.signal;
  positions_.process_gone(process.pid);
}

void HangWatch::lost(const LossEvent& loss) {
  if (hides_calls(loss.reason)) lost_ += std::max<std::uint64_t>(loss.count.value_or(1), 1);
}

void HangWatch::open_calls(const OpenCallsNow& calls) {
  std::uint64_t since_boot = now_ns(CLOCK_MONOTONIC);
  std::uint64_t now = since_boot > monotonic_ns_ ? since_boot - monotonic_ns_ : 0;
  for (auto& [pid, of] : doings_) of.open.reset();
  positions_.begin_open();
  calls.each([&](const Call& call, std::uint64_t open_ns) {
    if (Positions::concerns(*call.function)) positions_.note(call, true);
    if (!may_hang(*call.function)) return;
    Doing& of = doing(call.pid);
    // A collective says more than the driver's call that it is in.
    bool says_more =
        of.open && call.function->layer() > of.open->function->layer() && open_ns >= overdue_ns_;
    if (of.open && of.open->open_ns >= open_ns && !says_more) return;
    of.open = OpenCall{call.pid, call.tid, call.id, call.function, open_ns};
  });
  look(now);
}

void HangWatch::look(std::uint64_t now) {
  bool overdue = std::any_of(doings_.begin(), doings_.end(), [&](const auto& of) {
    return of.second.open && of.second.open->open_ns >= overdue_ns_;
  });
  overdue = overdue || is_any_behind(positions_, now, overdue_ns_);
  if (!overdue) {
    if (reported_) on_end_(now - overdue_since_ + overdue_ns_);
    overdue_since_ = 0;
    reported_ = false;
    return;
  }
  if (!overdue_since_) overdue_since_ = std::max<std::uint64_t>(now, 1);
  if (reported_ || now - overdue_since_ < SETTLE_NS) return;
  reported_ = true;
  for (auto& [pid, of] : doings_)
    if (!of.gone) of.state = state_of_(pid);
  on_hang_(judge(positions_, doings_, now, overdue_ns_, lost_));
}

}  // namespace cudabpf::hangs
