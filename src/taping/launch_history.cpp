#include "taping/launch_history.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/console/terminal.hpp"

namespace cudabpf::taping {

namespace {

using analyze::Field;
using analyze::Line;

// What the iterations' analysis looks at.
Line line_of(const Call& call, analyze::Names& names, const analyze::Process& process) {
  Line line;
  line.kind = analyze::LineKind::call;
  line.process = &process;
  line.id = call.id;
  line.ts = call.ts;
  line.pid = call.pid;
  line.tid = call.tid;
  if (call.has_return) {
    line.duration = call.duration;
    line.set(Field::duration);
    line.ret = call.result;
  }
  if (call.parent) line.set(Field::parent);
  line.layer = call.function->layer();
  line.unfinished = call.unfinished;
  line.async = call.function->async;
  line.meaning = &call.function->meaning;
  line.work = call.captured ? Work::recorded : call.function->meaning.work;
  if (call.details.size) {
    line.size = *call.details.size;
    line.set(Field::size);
  }
  if (call.kernel) line.kernel = names.add(call.kernel->full);
  return line;
}

// Without waits between them, what repeats may be the layers of a model's first run. These are over
// in no time, so repetitions count as iterations once they have gone on for a while.
bool are_iterations(const analyze::Iterations& found) {
  using Found = analyze::Iterations::Found;
  constexpr std::uint64_t A_WHILE_NS = 1'000'000'000;
  if (found.found == Found::between_waits) return true;
  if (found.found == Found::within_a_wait && found.launches == 1) return true;  // of a graph
  return found.found == Found::within_a_wait &&
         found.time_at(0.5) * (found.count - found.warm_up) >= A_WHILE_NS;
}

}  // namespace

// Whichever thread makes the call: some programs load code in threads of their own.
void LaunchHistory::look_for_new_code(const Call& call, const Line& line) {
  const Function& function = *call.function;
  bool is_load =
      function.type == Type::module && (function.op == Op::load || function.op == Op::jit_link);
  bool is_launch = line.work == Work::launch && line.kernel;
  if (!is_load && !(is_launch && kernels_.insert(line.kernel.id).second)) return;
  new_code_at_ = std::max(new_code_at_, call.ts);
  launches_by_then_ = launches(0);
}

void LaunchHistory::call(const Call& call) {
  process_.pid = call.pid;
  Line line = line_of(call, names_, process_);
  if (call.graph) {
    graph_.number = call.graph->number;
    graph_.kernels = call.graph->kernels;
    line.content = &graph_;
  }
  look_for_new_code(call, line);
  threads_.line(line);
  line.tid = 0;
  together_.line(line);
  if (!analyze::is_counted(line)) return;
  for (std::uint32_t tid : {call.tid, 0U}) {
    Thread& thread = history_[tid];
    if (line.work == Work::launch) {
      thread.launches.push_back({call.ts, thread.waited});
      thread.waited = false;
    } else if (analyze::waits(line.work, line)) {
      thread.waited = true;
    }
  }
}

std::uint64_t LaunchHistory::launches(std::uint32_t tid) const {
  auto known = history_.find(tid);
  return known == history_.end() ? 0 : known->second.launches.size();
}

std::optional<NextIteration> LaunchHistory::next_iteration() const {
  auto next = next_of(threads_);
  return next ? next : next_of(together_);
}

std::string LaunchHistory::why_not() const {
  if (auto next = next_iteration(); next && !next->is_settled)
    return "until its last iterations it loaded code, or ran some for the first time: --at N takes "
           "an iteration all the same";
  return fmt::format(
      "no iterations could be told in {}: at least {} with a wait for the GPU after each, or a "
      "second of them without",
      count_of(launches(0), "launch", "launches"), 3);
}

std::optional<NextIteration> LaunchHistory::next_of(const analyze::ThreadsAtWork& threads) const {
  analyze::ThreadsAtWork until_now = threads;
  until_now.finish({});
  if (until_now.threads().empty()) return std::nullopt;
  constexpr std::size_t LAST = 3, GOOD_PART = 4;  // a quarter
  const analyze::ThreadWork& busiest = until_now.threads().front();
  analyze::Iterations found = analyze::find_iterations(busiest);
  if (!are_iterations(found) || !found.launches) return std::nullopt;
  NextIteration next;
  next.tid = busiest.tid;
  next.warm_up = found.warm_up;
  next.launches = found.launches;
  next.number = found.count + 1;
  next.is_settled = found.each.size() >= LAST &&
                    found.each[found.each.size() - LAST].begin > new_code_at_ &&
                    (launches(0) - launches_by_then_) * GOOD_PART >= launches(0);
  // Where nothing separates them, one begins at any of its launches.
  if (found.found == analyze::Iterations::Found::within_a_wait) return next;
  // One ends with a wait, but not every wait ends one; and one may be somewhat longer or shorter.
  const std::uint64_t nearly_all = next.least_launches();
  const Thread& thread = history_.at(busiest.tid);
  std::uint64_t since = 0;  // launches of the iteration that has begun
  for (const Launched& launch : thread.launches) {
    if (launch.at < found.each.back().begin) continue;
    if (launch.waited && since >= nearly_all) {
      since = 0;
      next.number++;
    }
    since++;
  }
  next.at_wait = true;
  if (!thread.waited || since < nearly_all)
    next.until = since < nearly_all ? nearly_all - since : 1;
  return next;
}

}  // namespace cudabpf::taping
