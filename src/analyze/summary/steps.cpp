#include "analyze/summary/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "analyze/columns.hpp"

namespace cudabpf::analyze {

namespace {

// How long GPUs did something in a step, on average; nothing: it is not measured.
template <typename TimeOf>
Value in_each(const Steps& of, TimeOf time_of) {
  std::uint64_t measured = of.measured.busy.size();
  std::uint64_t count = std::max<std::uint64_t>(1, measured ? measured : of.stretch.rounds);
  return known_if(of.measured.gpu != nullptr, time_of(of.measured.share) / count);
}
// Where no collectives ran, the table has no column of them.
Value if_communicates(const Steps& of, Value value) {
  value.in_table &= of.measured.share.communication > 0;
  return value;
}
constexpr auto step_idle = [](const Steps& of) {
  return in_each(of, [](const auto& share) { return share.idle_time(); });
};
constexpr auto step_compute = [](const Steps& of) {
  return in_each(of, [](const auto& share) { return share.compute(); });
};
constexpr auto step_exposed = [](const Steps& of) {
  return if_communicates(of, in_each(of, [](const auto& share) { return share.exposed; }));
};
constexpr auto step_waiting = [](const Steps& of) {
  Value time = in_each(of, [](const auto& share) { return time_waited(share.waiting); });
  time.in_json = time.in_table = !of.measured.share.waiting.empty();
  return time;
};
constexpr auto step_awaited = [](const Steps& of) {
  return awaited_text(of.measured.share.waiting);
};
constexpr auto step_hidden = [](const Steps& of) {
  return if_communicates(of, in_each(of, [](const auto& share) { return share.hidden(); }));
};
constexpr auto step_exposed_share = [](const Steps& of) {
  double share = of.measured.percent_of(of.measured.share.exposed);
  return if_communicates(of, known_if(of.measured.gpu != nullptr, share));
};
template <auto Get>
constexpr auto step_timed = [](const Steps& of) {
  bool timed = of.iterations.times.count();
  return known_if(timed, timed ? Get(of.iterations) : 0);
};
constexpr auto step_mean = [](const Iterations& of) { return of.times.mean(); };
constexpr auto step_p50 = [](const Iterations& of) { return of.time_at(0.5); };
constexpr auto step_p99 = [](const Iterations& of) { return of.time_at(0.99); };
constexpr auto step_rank = [](const Steps& of) {
  return known_if(of.rank.has_value(), of.rank.value_or(0));
};
struct StepsShown {
  const Names& names;
};
constexpr auto step_host = [](const Steps& of, const StepsShown& in) {
  return if_any(std::string(in.names.text(of.host)));
};
constexpr auto step_comm = [](const Steps& of, const StepsShown& in) {
  return std::string(in.names.text(of.comm));
};
constexpr auto step_bound = [](const Steps& of) {
  return known_if(of.bound.has_value(), of.bound ? of.bound->heading() : std::string());
};

constexpr Column<Steps, StepsShown> STEP_COLUMNS[] = {
    {{"rank"}, As::number, step_rank},
    {{"pid"}, As::number, its<&Steps::pid>, {2, "process"}},
    {{"tid"}, As::number, its<&Steps::tid>},
    {{"host"}, As::text, step_host, {3, "host", IF_KNOWN}},
    {{"comm"}, As::text, step_comm},
    {{"iterations", "count"},
     As::count,
     its<&Steps::iterations, &Iterations::in_part>,
     {4, "iterations"}},
    {{"warm_up"}, As::count, its<&Steps::iterations, &Iterations::warm_up_in_part>},
    {{"mean_us", "mean", 3}, As::time, step_timed<step_mean>, {5, "mean"}},
    {{"p50_us", "p50"}, As::time, step_timed<step_p50>, {6, "p50", BAR}},
    {{"p99_us", "p99", 2}, As::time, step_timed<step_p99>, {7, "p99"}},
    {{"compute_us", "compute"}, As::time, step_compute, {8, "GPU: compute", IF_KNOWN}},
    {{"exposed_us", "exposed"}, As::time, step_exposed, {9, "only collectives", IF_KNOWN}},
    {{"exposed_share", "", 1}, As::percent, step_exposed_share, {10, "share", IF_KNOWN}},
    {{"waiting_us", "waiting", 1}, As::time, step_waiting, {11, "waiting for ranks", IF_KNOWN}},
    {{nullptr, "for", 2}, As::text, step_awaited},
    {{"hidden_us", "hidden", 2}, As::time, step_hidden, {12, "collectives hidden", IF_KNOWN}},
    {{"idle_us", "idle"}, As::time, step_idle, {13, "idle", IF_KNOWN}},
    {{"bound"}, As::text, step_bound, {14, "verdict", IF_KNOWN}},
    {{"phases"}, As::object, [](auto& of) { return phases_json(of.phases); }},
};

std::uint32_t rank_or_last(const Steps& steps) {
  return steps.rank.value_or(std::numeric_limits<std::uint32_t>::max());
}

}  // namespace

std::string Steps::title(const Names& names) const {
  std::string title = rank ? fmt::format("rank {}, {}", *rank, pid) : std::to_string(pid);
  if (comm) title += fmt::format(" {}", names.text(comm));
  if (host) title += fmt::format(" on {}", names.text(host));
  return title;
}

Steps steps_of(const Judged& judged) {
  const Execution& execution = judged.execution;
  Steps steps;
  steps.process = execution.thread()->process;
  steps.pid = execution.thread()->pid;
  steps.tid = execution.thread()->tid;
  for (const ProcessWork& process : execution.threads().processes())
    if (process.number == steps.process) {
      steps.comm = process.comm;
      steps.host = process.host;
      steps.rank = process.rank;
    }
  steps.iterations = execution.iterations();
  steps.iterations.each = {};
  steps.phases = execution.phases();
  steps.stretch = judged.stretch;
  steps.measured = judged.measured;
  return steps;
}

void sort_steps(std::vector<Steps>& steps) {
  std::sort(steps.begin(), steps.end(), [](const Steps& a, const Steps& b) {
    return std::tuple(rank_or_last(a), a.host.id, a.pid) <
           std::tuple(rank_or_last(b), b.host.id, b.pid);
  });
}

Json steps_json(const std::vector<Steps>& steps, const Names& names) {
  return list_of(steps, STEP_COLUMNS, StepsShown{names});
}

Json steps_columns() { return page_columns(STEP_COLUMNS); }

void add_steps(Page& page, const std::vector<Steps>& steps, const Names& names) {
  Table table = table_of("iterations of each process", STEP_COLUMNS);
  auto cells = cells_in(STEP_COLUMNS, page, {names});
  for (const Steps& one : steps) table.row(one.title(names), cells(one));
  table.add_to(page);
}

void add_phases_beside(Page& page, const std::vector<Steps>& steps, bool all) {
  constexpr double WORTH_SHOWING = 0.05;  // percent, which is rounded to 0.1
  constexpr unsigned ALWAYS_SHOWN = 2;
  std::vector<std::string> titles;
  titles.reserve(steps.size());
  for (const Steps& one : steps)
    titles.push_back(one.rank ? fmt::format("rank {}", *one.rank) : std::to_string(one.pid));
  std::vector<Table::Column> columns;
  for (unsigned i = 0; i < steps.size(); i++)
    columns.push_back({titles[i], i < ALWAYS_SHOWN ? 0 : i});
  Table table("phases of each process", std::move(columns));
  // Where a part is shown, each process has only the phases that lie in it.
  std::vector<std::string> names;
  for (const Steps& one : steps)
    for (const Phase& phase : one.phases.phases)
      if (std::find(names.begin(), names.end(), phase.name) == names.end())
        names.push_back(phase.name);
  for (const std::string& name : names) {
    std::vector<std::string> cells;
    bool any = all;
    for (const Steps& one : steps) {
      auto phase = std::find_if(one.phases.phases.begin(), one.phases.phases.end(),
                                [&](const Phase& of) { return of.name == name; });
      bool seen = phase != one.phases.phases.end() && phase->seen;
      any |= seen && share(phase->time, one.phases.end - one.phases.begin) >= WORTH_SHOWING;
      cells.push_back(seen ? human_time(phase->time) : "-");
    }
    if (any) table.row(name, std::move(cells));
  }
  table.add_to(page);
}

}  // namespace cudabpf::analyze
