#include "sink/top/top_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf {

namespace {

bool launches_work(const Function& function) { return function.meaning.work == Work::launch; }

std::string error_text(const Function& function, int result) {
  std::string_view error = function.result_name(result);
  return fmt::format("{}: {}", function.name,
                     error.empty() ? fmt::format("error {}", result) : error);
}

void add_to(TopModel::Calls& sum, const TopModel::Calls& calls) {
  sum.count += calls.count;
  sum.failed += calls.failed;
  sum.time_ns += calls.time_ns;
}

// A kernel's name may be of any length.
std::string_view kernel_name_of(const Call& call) {
  constexpr std::size_t LONGEST = 200;
  if (call.function->launches_graph()) return "(graph)";
  if (!call.kernel) return "(unknown)";
  return std::string_view(call.kernel->short_name).substr(0, LONGEST);
}

// The parts with the most calls first, and the others last.
std::vector<TopPart> in_order(std::map<std::string_view, TopModel::Calls>&& parts,
                              const TopModel::Calls& others) {
  std::vector<TopPart> all;
  all.reserve(parts.size() + 1);
  for (const auto& [name, calls] : parts)
    all.push_back({std::string(name), calls.count, calls.failed, calls.time_ns});
  std::sort(all.begin(), all.end(), [](const TopPart& a, const TopPart& b) {
    return std::tie(b.calls, b.time_ns, a.name) < std::tie(a.calls, a.time_ns, b.name);
  });
  if (others.count || others.time_ns || others.failed)
    all.push_back({std::string(TOP_OTHERS), others.count, others.failed, others.time_ns});
  return all;
}

}  // namespace

void TopFigures::add(const TopFigures& other) {
  calls += other.calls;
  launches += other.launches;
  failed += other.failed;
  time_ns += other.time_ns;
  waiting_ns += other.waiting_ns;
  driver_calls += other.driver_calls;
  for (const auto& [op, moved] : other.copies) {
    copies[op].count += moved.count;
    copies[op].bytes += moved.bytes;
  }
}

void TopLosses::add(const TopLosses& more) {
  events += more.events;
  uncounted |= more.uncounted;
  why |= more.why;
}

bool TopInterval::Books::balance() const {
  return records.entered == records.emitted + records.dropped &&
         records.received == records.emitted &&
         tallied.begun == tallied.ended + tallied.under_way + tallied.dropped;
}

void TopModel::Of::note_held() {
  process.held = 0;
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++)
    if (static_cast<MemoryKind>(kind) != MemoryKind::host)
      process.held += memory.figures()[kind].held;
  process.most_held = std::max(process.most_held, process.held);
}

void TopModel::Of::note_launch(const Call& call, const Calls& calls) {
  process.has_kernels = true;
  std::string_view name = kernel_name_of(call);
  if (!has_room_for(kernels, name, MAX_KERNELS)) name = TOP_OTHERS;
  auto at = kernels.find(name);
  if (at == kernels.end()) at = kernels.try_emplace(std::string(name)).first;
  add_to(at->second, calls);
}

TopProcess TopModel::Of::shown() const {
  TopProcess shown = process;
  std::map<std::string_view, Calls> by_name;  // versions of a function have the same
  Calls others;
  for (const auto& [function, calls] : functions)
    add_to(function ? by_name[function->name] : others, calls);
  shown.functions = in_order(std::move(by_name), others);
  Calls other_kernels;
  std::map<std::string_view, Calls> launched;
  for (const auto& [name, calls] : kernels)
    add_to(name == TOP_OTHERS ? other_kernels : launched[name], calls);
  shown.kernels = in_order(std::move(launched), other_kernels);
  shown.devices = memory.devices();
  shown.holds_unseen = !memory.sees_all(process.pid);
  return shown;
}

void TopModel::begin(const Session& session) {
  all_seen_ = session.mode == "run";
  driver_traced_ = session.driver_traced;
  monotonic_ns_ = session.monotonic_ns;
  for (const SampledGpu& gpu : session.sampling.gpus)
    sampled_gpus_[gpu.device] = {gpu.name, gpu.memory, gpu.power_limit};
}

TopModel::Of& TopModel::of(std::uint32_t pid) {
  if (!has_room_for(processes_, pid, MAX_PROCESSES)) pid = 0;
  auto& of = processes_[pid];
  if (!of) {
    of = std::make_unique<Of>();
    of->process.pid = pid;
    if (!pid) of->process.name = TOP_OTHERS;
    if (all_seen_ && pid) of->memory.all_seen();
  }
  return *of;
}

void TopModel::add(Of& of, const Function& function, Op op, const Calls& calls) {
  bool has_memory = of.functions.size() < MAX_FUNCTIONS || of.functions.contains(&function);
  add_to(of.functions[has_memory ? &function : nullptr], calls);
  TopFigures& figures = of.process.figures;
  figures.calls += calls.count;
  of.process.calls_in_all += calls.count;
  if (launches_work(function)) figures.launches += calls.count;
  figures.failed += calls.failed;
  figures.time_ns += calls.time_ns;
  if (function.meaning.work == Work::wait) figures.waiting_ns += calls.time_ns;
  if (!calls.copies) return;
  TopFigures::Copies& copies = figures.copies[op];
  copies.count += calls.copies;
  copies.bytes += calls.bytes;
}

void TopModel::call(const Call& call) {
  const Function& function = *call.function;
  bool ended = call.has_return || call.entry_lost;
  bool failed = ended && call.function->is_failure(call.result);
  Calls calls{.count = 1, .failed = failed};
  if (call.has_return && !call.parent) calls.time_ns = call.duration;
  if (function.copies() && !failed && !call.captured) {
    calls.copies = 1;
    calls.bytes = call.details.size.value_or(0);
  }
  Of& of = this->of(call.pid);
  add(of, function, call.details.op == Op::none ? function.op : call.details.op, calls);
  if (launches_work(function)) of.note_launch(call, calls);
  of.memory.call(call);
  if (RunMemory::concerns(function)) of.note_held();
  if (!failed) return;
  remember({call.pid, &function, call.result},
           {call.ts, call.pid, error_text(function, call.result)});
}

void TopModel::tallied(const Tallies& tallies) {
  for (const Tally& tally : tallies.functions) {
    bool known = processes_.contains(tally.pid);
    auto at = tallies_.try_emplace({tally.pid, tally.function}).first;
    tallied(tally, at->second);
    // The process's end was shown before, or never will be.
    if (tally.last && !known)
      if (TopProcess& process = of(tally.pid).process; process.pid) process.ended = true;
    if (tally.last) tallies_.erase(at);
  }
}

// Copies and their bytes are those that calls requested: whether they were done is not known.
void TopModel::tallied(const Tally& now, Tally& before) {
  const Function& function = *now.function;
  Calls calls{.count = grown(now.calls, before.calls),
              .time_ns = grown(now.time_ns, before.time_ns),
              .failed = grown(now.failed, before.failed)};
  if (function.copies()) {
    calls.copies = calls.count;
    calls.bytes = grown(now.bytes, before.bytes);
  }
  before = now;
  if (!calls.count && !calls.time_ns && !calls.failed) return;
  add(now.pid, function, function.op, calls);
  if (!calls.failed) return;
  constexpr int ANY = -1;  // the results of other failed calls are not known
  remember({now.pid, &function, ANY}, {.ts = grown(now.failed_at, monotonic_ns_),
                                       .pid = now.pid,
                                       .what = error_text(function, now.error),
                                       .count = calls.failed});
}

void TopModel::driver_call(const DriverCall& call) {
  if (call.op == DriverCall::Op::ioctl) of(call.pid).process.figures.driver_calls++;
}

void TopModel::gpu_error(const GpuError& error) {
  remember({error.pid.value_or(0), nullptr, static_cast<int>(error.xid)},
           {error.ts, error.pid.value_or(0),
            fmt::format("Xid {} on {}: {}", error.xid, error.device, error.meaning)});
}

void TopModel::process(const Process& process) {
  if (process.op == Process::Op::exit && !processes_.contains(process.pid)) return;
  Of& of = this->of(process.pid);
  of.memory.process(process);
  of.note_held();
  if (!of.process.pid) return;
  of.process.ended = process.op == Process::Op::exit;
  if (of.process.ended) return;
  of.process.name = process.comm;
  of.process.container = process.container_id;
  of.process.pod = process.pod;
}

void TopModel::lost(const LossEvent& loss) {
  if (info(loss.reason).degraded) return;
  TopLosses one{.events = loss.count.value_or(0), .uncounted = !loss.count, .why = {}};
  one.why.set(static_cast<std::size_t>(loss.reason));
  lost_.add(one);
}

void TopModel::remember(const ErrorKey& key, TopError error) {
  auto process = processes_.find(error.pid);
  if (error.pid && process != processes_.end()) error.name = process->second->process.name;
  auto same = std::find_if(errors_.begin(), errors_.end(),
                           [&](const Remembered& one) { return one.key == key; });
  if (same != errors_.end()) {
    error.count += same->error.count;
    if (error.name.empty()) error.name = std::move(same->error.name);
    errors_.erase(same);
  }
  errors_.push_back({key, std::move(error)});
  if (errors_.size() > MAX_ERRORS) errors_.pop_front();
}

TopInterval TopModel::interval(std::uint64_t now_ns) const {
  TopInterval interval;
  interval.begin_ns = begin_ns_;
  interval.end_ns = now_ns;
  for (const auto& [pid, of] : processes_) {
    const TopProcess& process = interval.processes.emplace_back(of->shown());
    interval.all.add(process.figures);
  }
  std::sort(interval.processes.begin(), interval.processes.end(),
            [](const TopProcess& a, const TopProcess& b) {
              return std::tie(a.ended, b.figures.time_ns, b.figures.calls, a.pid) <
                     std::tie(b.ended, a.figures.time_ns, a.figures.calls, b.pid);
            });
  interval.gpus = gpus_;
  interval.sampled_gpus = sampled_gpus_;
  for (const Remembered& one : errors_) {
    interval.errors.push_back(one.error);
    if (one.key.function && one.key.result < 0 && one.error.count > 1)
      interval.errors.back().what += " (the last)";
  }
  interval.lost = lost_;
  interval.driver_traced = driver_traced_;
  return interval;
}

void TopModel::begin_next(std::uint64_t now_ns) {
  begin_ns_ = now_ns;
  std::erase_if(processes_, [](const auto& one) { return one.second->process.ended; });
  for (auto& [pid, of] : processes_) {
    of->process.figures = {};
    of->functions.clear();
    of->kernels.clear();
  }
  gpus_ = {};
  lost_ = {};
}

}  // namespace cudabpf
