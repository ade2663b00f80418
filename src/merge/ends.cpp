#include "merge/ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "merge/host_numbers.hpp"
#include "merge/machine_lines.hpp"
#include "trace/end.hpp"
#include "trace/header.hpp"
#include "util/exit_codes.hpp"
#include "util/saturating.hpp"

namespace cudabpf::merge {

namespace {

// A machine since it was started, or a container of it with a name of its own.
struct Host {
  std::size_t boot = 0;
  std::string name;   // empty: not known, as in redacted traces
  std::string label;  // of its lines
};

class Hosts {
 public:
  // Nothing: there are too many.
  std::optional<std::uint32_t> number_of(std::size_t boot, const std::string& name) {
    for (std::size_t i = 0; i < hosts_.size(); i++)
      if (hosts_[i].boot == boot &&
          (hosts_[i].name == name || hosts_[i].name.empty() || name.empty()))
        return static_cast<std::uint32_t>(i);
    if (hosts_.size() == MAX_HOSTS) return std::nullopt;
    std::string plain = name.empty() ? fmt::format("host {}", hosts_.size() + 1) : name;
    std::string label = plain;
    for (unsigned i = 2; !labels_.insert(label).second; i++)
      label = fmt::format("{} ({})", plain, i);
    hosts_.push_back({boot, name, label});
    return static_cast<std::uint32_t>(hosts_.size() - 1);
  }
  const std::string& label(std::uint32_t number) const { return hosts_[number].label; }

 private:
  std::vector<Host> hosts_;
  std::set<std::string> labels_;
};

std::uint64_t duration_of(const Surveyed& trace) {
  return std::min(trace.facts.duration(), LATEST_TS);
}

// The value that all traces have; empty: they differ.
template <typename Of>
auto common(const std::vector<Surveyed>& traces, Of of) {
  auto value = of(traces.front().facts.header);
  for (const Surveyed& trace : traces)
    if (of(trace.facts.header) != value) return decltype(value){};
  return value;
}

template <typename Item>
void add_new(std::vector<Item>& to, const std::vector<Item>& more) {
  for (const Item& item : more)
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
}

void add_sampling(Sampling& all, const Sampling& of, const HostNumbers& numbers) {
  if (all.gpus.empty()) {
    all.period_ns = of.period_ns;
    all.window_ns = of.window_ns;
    all.slow_ns = of.slow_ns;
    all.why_not = of.why_not;
  }
  all.own_pids |= of.own_pids;
  all.switches |= of.switches;
  if (all.switches_why_not.empty()) all.switches_why_not = of.switches_why_not;
  for (SampledGpu gpu : of.gpus) {
    gpu.device = static_cast<std::uint32_t>(numbers.device(gpu.device));
    bool known = std::any_of(all.gpus.begin(), all.gpus.end(),
                             [&](const SampledGpu& one) { return one.device == gpu.device; });
    if (!known) all.gpus.push_back(std::move(gpu));
  }
}

// What a trace adds to what all have.
void add_trace(Session& session, const TraceHeader& header, const MergedTrace& merged) {
  HostNumbers numbers{merged.number};
  for (Gpu gpu : header.gpus) {
    gpu.index = static_cast<int>(numbers.device(gpu.index));
    add_new(session.gpus, {gpu});
  }
  if (header.sampling) add_sampling(session.sampling, *header.sampling, numbers);
  for (std::uint32_t pid : header.pids) session.pids.push_back(numbers.process(pid));
  add_new(session.unseen, header.unseen);
  add_new(session.left_out, header.left_out);
  session.returns &= header.returns.value_or(true);
  session.follow &= header.follow.value_or(true);
  session.driver_traced |= header.driver_traced.value_or(false);
  session.ranges |= header.ranges;
  session.python |= header.python;
  session.python_slower_ns = std::max(session.python_slower_ns, header.python_slower_ns);
  session.shapes |= header.shapes;
  session.blocks |= header.blocks;
  session.redacted |= header.redacted;
  session.ring_size = std::max(session.ring_size, header.ring_size);
  if (session.gpu_timing != "graphs" && header.measures_gpus())
    session.gpu_timing = header.gpu_timing;
  if (header.samples_gpus() && !session.gpu_period_ns) {
    session.gpu_window_ns = header.gpu_window_ns;
    session.gpu_period_ns = header.gpu_period_ns;
  }
  for (Library library : header.libraries) {
    if (library.ts) library.ts = saturating_sum(library.ts, merged.offset_ns);
    session.libraries.push_back(std::move(library));
  }
}

// At the merge's ts 0, by the first trace's clocks.
void set_clocks(Session& session, const TraceHeader& first, std::uint64_t offset_ns) {
  if (!first.clocks) return;
  auto before = [&](std::uint64_t clock) { return clock > offset_ns ? clock - offset_ns : 0; };
  session.realtime_ns = before(first.clocks->realtime);
  session.monotonic_ns = before(first.clocks->monotonic);
  session.boottime_ns = before(first.clocks->boottime);
  session.namespace_offsets = first.clocks->offsets;
  session.clock_error = first.clock_error;
}

std::uint64_t begin_of(const std::vector<MergedTrace>& merged) {
  std::uint64_t begin = LATEST_TS;
  for (const MergedTrace& one : merged)
    begin = std::min(begin, saturating_sum(one.offset_ns, one.since_ns));
  return begin;
}

void add_counts(GpuOperationCounts& all, const GpuOperationCounts& of) {
  for (auto member :
       {&GpuOperationCounts::operations, &GpuOperationCounts::joined, &GpuOperationCounts::invalid,
        &GpuOperationCounts::calls, &GpuOperationCounts::answered})
    all.*member = saturating_sum(all.*member, of.*member);
  for (std::size_t i = 0; i < UNJOINED; i++)
    all.unjoined[i] = saturating_sum(all.unjoined[i], of.unjoined[i]);
  all.clock_error_ns = std::max(all.clock_error_ns, of.clock_error_ns);
}

// What a trace's end adds up, besides what its lines are.
void add_end(Totals& totals, const Surveyed& trace) {
  for (std::size_t i = 0; i < LOSS_COUNT; i++) {
    auto loss = trace.facts.losses.find(std::string(info(static_cast<Loss>(i)).name));
    if (loss != trace.facts.losses.end())
      totals.losses[i] = saturating_sum(totals.losses[i], loss->second.count);
  }
  if (!trace.facts.end) return;
  const TraceEnd& end = *trace.facts.end;
  if (end.accounts)
    for (auto member :
         {&Accounts::entered, &Accounts::emitted, &Accounts::dropped, &Accounts::received})
      totals.accounts.*member = saturating_sum(totals.accounts.*member, *end.accounts.*member);
  for (auto member : {&KernelNameCounts::confirmed, &KernelNameCounts::contradicted})
    totals.kernel_names.*member =
        saturating_sum(totals.kernel_names.*member, end.kernel_names.*member);
  if (!end.gpu_operations) return;
  if (!totals.gpu_operations) totals.gpu_operations.emplace();
  add_counts(*totals.gpu_operations, *end.gpu_operations);
}

MergedTrace described(const Surveyed& trace, const Placed& placed) {
  const analyze::TraceFacts& facts = trace.facts;
  MergedTrace one;
  one.file = std::filesystem::path(trace.files.front()).filename().string();
  bool has_boot = monotonic_of(facts.header) > 0;
  one.boot_id = has_boot ? facts.header.boot_id : "";
  one.rank = facts.header.rank;
  one.alignment = placed.alignment;
  one.offset_ns = placed.offset_ns;
  one.error_ns = placed.error_ns;
  one.bound_ns = placed.bound_ns;
  one.why_unknown = placed.why_unknown;
  one.since_ns = facts.part.recorded_from;
  one.duration_ns = duration_of(trace);
  one.calls = trace.counts.calls;
  if (facts.end) one.accounts = facts.end->accounts;
  for (const auto& [reason, loss] : facts.losses) one.losses.emplace(reason, loss.count);
  one.cut_off = facts.cut_off;
  one.missing = facts.missing;
  one.malformed = saturating_sum(facts.malformed, trace.unfit);
  one.repeated = trace.repeated;
  return one;
}

}  // namespace

Result<std::vector<MergedTrace>> described(const std::vector<Surveyed>& traces,
                                           const std::vector<Placed>& placed) {
  std::vector<MergedTrace> merged;
  Hosts hosts;
  for (std::size_t i = 0; i < traces.size(); i++) {
    auto number = hosts.number_of(placed[i].boot, traces[i].facts.header.host);
    if (!number)
      return Error{fmt::format("these are traces of more than {} hosts", MAX_HOSTS),
                   "merge fewer at once", exit_code::USAGE};
    merged.push_back(described(traces[i], placed[i]));
    merged.back().number = *number;
    merged.back().host = hosts.label(*number);
  }
  return merged;
}

std::string merged_header(const std::vector<Surveyed>& traces,
                          const std::vector<MergedTrace>& merged) {
  Session session;
  session.version = CUDABPF_VERSION;
  if (hosts_of(merged).size() == 1) session.host = merged.front().host;
  session.linux_release = common(traces, [](auto& header) { return header.linux_release; });
  session.boot_id = common(traces, [](auto& header) { return header.boot_id; });
  session.arch = common(traces, [](auto& header) { return header.arch; });
  session.driver = common(traces, [](auto& header) { return header.driver; });
  session.mode = common(traces, [](auto& header) { return header.mode; });
  if (session.mode.empty()) session.mode = "merged";
  session.source = common(traces, [](auto& header) { return header.source; });
  session.profile = common(traces, [](auto& header) { return header.profile; });
  session.driver_way = common(traces, [](auto& header) { return header.driver_way; });
  session.only = common(traces, [](auto& header) { return header.only; });
  session.exclude = common(traces, [](auto& header) { return header.exclude; });
  session.only_libraries = common(traces, [](auto& header) { return header.only_libraries; });
  if (auto command = common(traces, [](auto& header) { return header.command; }))
    session.command = *command;
  for (std::size_t i = 0; i < traces.size(); i++)
    add_trace(session, traces[i].facts.header, merged[i]);
  set_clocks(session, traces.front().facts.header, merged.front().offset_ns);
  return header_line(session, {0, begin_of(merged)}, merged);
}

std::string merged_end(const std::vector<Surveyed>& traces, const std::vector<MergedTrace>& merged,
                       std::uint64_t lines) {
  FileEnd end;
  end.lines = lines;
  Totals& totals = end.totals;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < traces.size(); i++) {
    last = std::max(last, merged[i].offset_ns + duration_of(traces[i]));
    const EventCounts& counts = traces[i].counts;
    totals.counts.calls += counts.calls;
    totals.counts.unfinished += counts.unfinished;
    totals.counts.driver_calls += counts.driver_calls;
    totals.counts.read_faults += counts.read_faults;
    add_end(totals, traces[i]);
  }
  end.part.since = begin_of(merged);
  end.has_accounts = std::any_of(merged.begin(), merged.end(),
                                 [](const MergedTrace& one) { return one.accounts.has_value(); });
  totals.duration_ns = last - std::min(last, end.part.since);
  totals.reason = "merged";
  return end_line(end);
}

}  // namespace cudabpf::merge
