#include "sink/metrics/ledger.hpp"

#include <algorithm>
#include <set>

#include "cudabpf/abi.h"
#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf {

namespace {

constexpr std::uint64_t SECOND_NS = 1'000'000'000;
// Its last tallies come within a fraction of a second.
constexpr std::uint64_t ENDED_PROCESS_KEPT_NS = 5 * SECOND_NS, UNUSED_KEPT_NS = SECOND_NS;
// A workload that is gone stays until each reader has this many pages of it, for this long at
// least; where nobody scrapes, and where the receiver of pushed pages cannot be reached, for that
// long.
constexpr unsigned PAGES_KEPT = 2;
constexpr std::uint64_t LEAST_KEPT_NS = 120 * SECOND_NS;
constexpr std::uint64_t MAX_KEPT_NS[] = {300 * SECOND_NS, 3600 * SECOND_NS};
// A GPU that is lost is not read again.
constexpr std::uint64_t GPU_STALE_NS = 60 * SECOND_NS;

void add_grown(Times& to, const Times& now, const Times& before) {
  to.time_ns += grown(now.time_ns, before.time_ns);
  for (std::size_t i = 0; i < to.calls.size(); i++)
    to.calls[i] += grown(now.calls[i], before.calls[i]);
}

void take_figures(GpuSample& latest, const GpuSample& sample) {
  latest.ts = sample.ts;
#define GPU_FIGURE(key, unit, decimals, most, title) \
  if (sample.key) latest.key = sample.key;
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  if (sample.throttle) latest.throttle = sample.throttle;
}

CollectiveSize class_of_size(std::uint64_t size) {
  auto at = std::find_if(COLLECTIVE_SIZES.begin(), COLLECTIVE_SIZES.end(),
                         [&](const auto& one) { return size <= one.second; });
  return static_cast<CollectiveSize>(at - COLLECTIVE_SIZES.begin());
}

}  // namespace

void Ledger::begin(const Session& session) {
  others_->sums.workload.program = OTHER_WORKLOADS;
  kept_.driver_traced = session.driver_traced;
  kept_.open_calls_known = session.returns;
  begin_ns_ = session.monotonic_ns;
  for (const Library& one : session.libraries) library(one);
  for (const SampledGpu& gpu : session.sampling.gpus) {
    kept_.gpus.push_back({gpu, {}});
    kept_.gpus.back().latest.device = gpu.device;
  }
}

Ledger::Series& Ledger::admit(const Workload& wanted) {
  Workload workload = wanted;
  auto at = series_.find(workload);
  if (at != series_.end()) return *at->second;
  auto is_alike = [&workload](const auto& one) {
    Workload other = one.first;
    other.program = workload.program;
    return other == workload;
  };
  auto alike = std::count_if(series_.begin(), series_.end(), is_alike);
  if (static_cast<std::size_t>(alike) >= std::max<std::size_t>(most_workloads_ / 2, 1)) {
    kept_.workloads_refused++;
    workload.program = OTHER_WORKLOADS;
    at = series_.find(workload);
    if (at != series_.end()) return *at->second;
  }
  if (series_.size() >= most_workloads_ || workload == others_->sums.workload) {
    kept_.workloads_refused += workload == wanted;
    return *others_;
  }
  auto& made = series_[workload];
  made = std::make_unique<Series>();
  made->sums.workload = workload;
  return *made;
}

Ledger::Series& Ledger::series_of(Of& of) {
  if (of.series) return *of.series;
  Series& series = admit(of.workload);
  of.series = &series;
  series.users++;
  series.sums.processes += of.alive;
  node_.processes += of.alive;
  return series;
}

void Ledger::leave(Of& of) {
  if (!of.series) return;
  Series& series = *of.series;
  change_alive(of, false);
  series.sums.held -= of.held;
  node_.held -= of.held;
  of.held = 0;
  of.series = nullptr;
  if (--series.users > 0) return;
  series.gone_ns = now_ns_;
  series.page_before = pages_;
  series.pages_since = {};
}

void Ledger::change_alive(Of& of, bool alive) {
  if (of.alive == alive) return;
  of.alive = alive;
  if (!alive) of.ended_ns = now_ns_;
  if (!of.series) return;
  for (WorkloadSums* sums : {&of.series->sums, &node_})
    alive ? sums->processes++ : sums->processes--;
}

Ledger::Of& Ledger::of(std::uint32_t pid) {
  bool has_room = has_room_for(processes_, pid, MAX_PROCESSES);
  auto& of = has_room ? processes_[pid] : other_processes_;
  if (!has_room) kept_.processes_refused++;
  if (of) return *of;
  of = std::make_unique<Of>();
  of->workload.program = UNKNOWN_PROGRAM;
  of->ended_ns = now_ns_;  // until it is known to be alive
  if (has_room) return *of;
  of->series = others_.get();
  others_->users++;
  return *of;
}

void Ledger::held_changed(std::uint32_t pid, std::uint64_t more, std::uint64_t less) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  Of& of = *process->second;
  less = std::min(less, of.held);  // it may have changed its program since
  of.held += more - less;
  add(of, [&](WorkloadSums& sums) {
    sums.held += more - less;
    sums.most_held = std::max(sums.most_held, sums.held);
  });
}

void Ledger::process(const Process& process) {
  Of& of = this->of(process.pid);
  if (&of == other_processes_.get()) return;
  memory_.process(process);
  if (process.op != Process::Op::fork) positions_.process_gone(process.pid);
  if (process.op == Process::Op::exit) return change_alive(of, false);
  Workload workload = workload_of(process, pods_);
  if (workload != of.workload) leave(of);
  of.workload = std::move(workload);
  change_alive(of, true);
}

void Ledger::add_error(WorkloadSums& sums, ApiId api, int result, std::uint64_t calls) {
  if (has_room_for(sums.errors, std::pair(api, result), MAX_RESULTS))
    sums.errors[{api, result}] += calls;
}

void Ledger::call(const Call& call) {
  const Function& function = *call.function;
  Of& of = this->of(call.pid);
  bool ended = call.has_return || call.entry_lost;
  bool failed = ended && function.is_failure(call.result);
  add(of, [&](WorkloadSums& sums) {
    WorkloadSums::OfClass& to = sums.classes[static_cast<std::size_t>(class_of(function))];
    to.calls++;
    to.failed += failed;
    std::uint64_t size = call.details.size.value_or(0);
    if (function.copies() && size <= CB_MOST_COPIED) to.bytes += size;
    if (call.has_return) to.times.add(call.duration);
    if (failed) add_error(sums, function.api, call.result, 1);
  });
  memory_.call(call);
  if (function.layer() > 0) collective(call);
  if (function.launches_graph()) graph_launched(call);
}

void Ledger::collective(const Call& call) {
  positions_.note(call, false);
  if (!call.sequence || call.function->type != Type::collective) return;
  std::uint64_t size = call.details.size.value_or(0);
  add(of(call.pid), [&](WorkloadSums& sums) {
    WorkloadSums::OfCollective& to = sums.collectives[{call.function->op, class_of_size(size)}];
    if (call.has_return) to.time_ns += call.duration;
    if (call.captured) return;  // it runs when its graph is launched
    to.calls++;
    to.bytes += size;
  });
}

void Ledger::graph_launched(const Call& call) {
  positions_.note(call, false);
  // A graph holds few kinds of collectives, many times.
  std::map<std::pair<Op, CollectiveSize>, WorkloadSums::OfCollective> ran;
  if (call.graph)
    for (const CapturedCollective& one : call.graph->collectives) {
      WorkloadSums::OfCollective& to = ran[{one.op, class_of_size(one.size)}];
      to.calls++;
      to.bytes += one.size;
    }
  add(of(call.pid), [&](WorkloadSums& sums) {
    sums.unknown_graph_launches += call.graph_unknown != GraphUnknown::none;
    for (const auto& [key, more] : ran) {
      sums.collectives[key].calls += more.calls;
      sums.collectives[key].bytes += more.bytes;
    }
  });
}

void Ledger::tallied(const Tallies& tallies) {
  for (const Tally& tally : tallies.functions) tallied(tally);
  for (const ClassTally& tally : tallies.classes) tallied(tally);
  for (const FailureTally& tally : tallies.failures) tallied(tally);
  // Their ends may have been lost.
  std::set<std::uint32_t> gone;
  for (const Tally& tally : tallies.functions)
    tally.last ? void(gone.insert(tally.pid)) : void(gone.erase(tally.pid));
  for (std::uint32_t pid : gone) change_alive(of(pid), false);
}

void Ledger::tallied(const Tally& now) {
  const Function& function = *now.function;
  auto at = functions_.try_emplace({now.pid, now.function}).first;
  Before& before = at->second;
  const Tally& was = before.tally;
  add(of(now.pid), [&](WorkloadSums& sums) {
    WorkloadSums::OfClass& to = sums.classes[static_cast<std::size_t>(class_of(function))];
    to.calls += grown(now.calls, was.calls);
    to.failed += grown(now.failed, was.failed);
    if (function.copies()) to.bytes += grown(now.bytes, was.bytes);
  });
  // While some calls end and others begin, it is not known which one is open.
  bool waits = now.calls > now.ended;
  if (!waits)
    before.open_since_ns = 0;
  else if (!before.open_since_ns || now.ended != was.ended)
    before.open_since_ns = now_ns_;
  before.tally = now;
  if (now.last) functions_.erase(at);
}

void Ledger::tallied(const ClassTally& now) {
  auto at = classes_.try_emplace({now.pid, now.of}).first;
  add(of(now.pid), [&](WorkloadSums& sums) {
    add_grown(sums.classes[static_cast<std::size_t>(now.of)].times, now.times, at->second);
  });
  at->second = now.times;
  if (now.last) classes_.erase(at);
}

// Calls of other libraries are never only counted.
void Ledger::tallied(const FailureTally& now) {
  auto at = failures_.try_emplace({now.pid, now.result}).first;
  add(of(now.pid), [&](WorkloadSums& sums) {
    if (std::uint64_t more = grown(now.calls, at->second))
      add_error(sums, ApiId::cuda, now.result, more);
  });
  at->second = now.calls;
  if (now.last) failures_.erase(at);
}

// Only calls that are recorded one by one come here.
void Ledger::open_calls(const OpenCallsNow& calls) {
  for (auto& [pid, of] : processes_) of->oldest_open_ns = 0;
  calls.each([this](const Call& call, std::uint64_t open_ns) {
    if (call.function->layer() > 0) positions_.note(call, true);
    Of& of = this->of(call.pid);
    series_of(of);
    of.oldest_open_ns = std::max(of.oldest_open_ns, open_ns);
  });
}

void Ledger::driver_call(const DriverCall& call) {
  if (call.op == DriverCall::Op::ioctl)
    add(of(call.pid), [](WorkloadSums& sums) { sums.ioctls++; });
}

void Ledger::gpu_error(const GpuError& error) {
  std::pair key(error.xid, error.device);
  if (has_room_for(kept_.xids, key, MAX_XIDS)) kept_.xids[key]++;
}

void Ledger::gpu_sample(const GpuSample& sample) {
  for (LedgerGpu& one : kept_.gpus)
    if (one.gpu.device == sample.device) take_figures(one.latest, sample);
}

// Names are long, and classifying one takes a while.
KernelClass Ledger::kernel_class_of(const KernelName* kernel) {
  if (!kernel) return KernelClass::other;
  if (kernels_.size() >= MAX_KERNELS) kernels_.clear();
  auto [known, is_new] = kernels_.try_emplace(kernel->full);
  if (is_new) known->second = class_of_kernel(kernel->full);
  return known->second;
}

void Ledger::gpu_operation(const GpuOperation& operation) {
  if (operation.op != GpuOperation::Op::kernel) return;
  auto of_class = static_cast<std::size_t>(kernel_class_of(operation.kernel));
  add(of(operation.pid), [&](WorkloadSums& sums) {
    sums.work.kernels[of_class].count++;
    sums.work.kernels[of_class].time_ns += operation.duration;
    sums.loads.ran(operation.ts, operation.duration);
  });
}

void Ledger::gpu_window(const GpuWindow& window) {
  add(of(window.pid), [&](WorkloadSums& sums) {
    sums.work.window_ns += sums.loads.add(window.ts, saturating_sum(window.ts, window.duration));
  });
}

void Ledger::library(const Library& library) {
  const Api* api = api_of_key(library.api);
  if (!api) return;
  auto& [probed, failed] = kept_.libraries[api->id];
  (library.error.empty() ? probed : failed)++;
}

void Ledger::lost(const LossEvent& loss) {
  auto reason = static_cast<std::size_t>(loss.reason);
  if (loss.count)
    kept_.lost[reason] += *loss.count;
  else
    kept_.uncounted[reason]++;
}

void Ledger::tick(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  std::erase_if(processes_, [&](auto& one) {
    Of& of = *one.second;
    std::uint64_t kept = of.series ? ENDED_PROCESS_KEPT_NS : UNUSED_KEPT_NS;
    if (of.alive || now_ns - of.ended_ns < kept || has_tallies(one.first)) return false;
    leave(of);
    return true;
  });
  std::erase_if(series_,
                [&](const auto& one) { return !one.second->users && is_known(*one.second); });
}

// Whoever reads pages has its last sums.
bool Ledger::is_known(const Series& gone) const {
  std::uint64_t since = now_ns_ - gone.gone_ns;
  auto by = [&](MetricsReader reader) {
    auto at = static_cast<std::size_t>(reader);
    return since >= MAX_KEPT_NS[at] || gone.pages_since[at] >= PAGES_KEPT;
  };
  return since >= LEAST_KEPT_NS && by(MetricsReader::scraper) &&
         (!has_receiver_ || by(MetricsReader::receiver));
}

void Ledger::reached(MetricsReader reader, std::uint64_t page_number) {
  for (auto& [workload, series] : series_)
    if (!series->users && page_number > series->page_before)
      series->pages_since[static_cast<std::size_t>(reader)]++;
}

bool Ledger::has_tallies(std::uint32_t pid) const {
  auto first = functions_.lower_bound({pid, nullptr});
  return first != functions_.end() && first->first.first == pid;
}

void Ledger::look_for_lost_ends(const std::function<bool(std::uint32_t pid)>& is_running) {
  for (auto& [pid, of] : processes_)
    if (of->alive && !is_running(pid)) change_alive(*of, false);
}

LedgerPage Ledger::page() {
  LedgerPage page = kept_;
  page.number = ++pages_;
  std::erase_if(page.gpus, [this](const LedgerGpu& one) {
    std::uint64_t read = begin_ns_ + one.latest.ts;
    return now_ns_ > read && now_ns_ - read > GPU_STALE_NS;
  });
  std::map<const Series*, std::uint64_t> open;
  for (const auto& [key, before] : functions_) {
    auto process = processes_.find(key.first);
    if (!before.open_since_ns || process == processes_.end()) continue;
    std::uint64_t& oldest = open[process->second->series];
    oldest = std::max(oldest, now_ns_ - before.open_since_ns);
  }
  for (const auto& [pid, of] : processes_)
    if (of->oldest_open_ns) open[of->series] = std::max(open[of->series], of->oldest_open_ns);
  std::map<const Series*, std::uint64_t> behind;
  for (const auto& [pid, since] : positions_.behind()) {
    auto process = processes_.find(pid);
    if (process == processes_.end() || now_ns_ < begin_ns_ + since) continue;
    std::uint64_t& longest = behind[process->second->series];
    longest = std::max(longest, now_ns_ - begin_ns_ - since);
  }
  auto print = [&](const Series& series) {
    WorkloadSums& sums = page.workloads.emplace_back(series.sums);
    if (auto at = behind.find(&series); at != behind.end()) sums.behind_ns = at->second;
    if (auto at = open.find(&series); at != open.end()) sums.oldest_open_ns = at->second;
  };
  for (const auto& [workload, series] : series_) print(*series);
  if (kept_.workloads_refused || kept_.processes_refused) print(*others_);
  page.node = node_;
  return page;
}

}  // namespace cudabpf
