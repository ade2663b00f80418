// The answer about a trace's idle times.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/columns.hpp"
#include "analyze/iterations/execution.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

namespace {

std::string name_of(const Idle::OfProcess& process, const Names& names) {
  return process_name(process.pid, names.text(process.comm));
}

struct GapsShown {
  const Names& names;
  bool several_processes = false;

  Json call(std::uint64_t id, Name name) const { return {{"id", id}, {"name", names.text(name)}}; }
  Value longest(const Gap& of) const {
    Json json = {{"name", names.text(of.longest_call)}, {"time_us", microseconds(of.longest)}};
    return known_if(bool(of.longest_call), std::move(json));
  }
  Value process(const Gap& of) const { return shown_if(several_processes, of.pid); }
};

constexpr Column<Gap, GapsShown> GAP_COLUMNS[] = {
    {{"begin_us", "at"}, As::begin, its<&Gap::begin>, {1, "from"}},
    {{"time_us", "time"}, As::time, its<&Gap::time>, {2, "length", BAR}},
    {{"pid"}, As::number, its<&Gap::pid>, {7, "process"}},
    {{"tid"}, As::number, its<&Gap::tid>},
    {{"after"}, As::object, [](auto& of, auto& in) { return in.call(of.after, of.after_name); }},
    {{"after.name"}, As::text, {5, "after"}},
    {{"until"}, As::object, [](auto& of, auto& in) { return in.call(of.until, of.until_name); }},
    {{"until.name"}, As::text, {6, "until"}},
    {{"in_calls_us"}, As::time, its<&Gap::in_calls>, {3, "in CUDA calls"}},
    {{nullptr, "outside CUDA"}, As::word, [](auto& of) { return outside_calls(of); }},
    {{nullptr, "process"}, As::number, [](auto& of, auto& in) { return in.process(of); }},
    {{"untimed_calls"}, As::count, its<&Gap::untimed>},
    {{"longest_call"}, As::object, [](auto& of, auto& in) { return in.longest(of); }},
    {{"longest_call.name", "longest call", 2},
     As::text,
     [](auto& of, auto& in) { return in.names.text(of.longest_call); },
     {4, "longest call in it"}},
    {{nullptr, "", 2}, As::time, its<&Gap::longest, shown_if_any>},
};

void add_gaps(Page& page, std::string title, const std::vector<Gap>& gaps, const Names& names,
              bool several_processes) {
  Table table = table_of(std::move(title), GAP_COLUMNS);
  auto cells = cells_in(GAP_COLUMNS, page, {names, several_processes});
  for (const Gap& gap : gaps)
    table.row(fmt::format("{} to {}", names.text(gap.after_name), names.text(gap.until_name)),
              cells(gap));
  if (!table.empty()) table.add_to(page);
}

// How much of the time from its first work to its last each process spent that way; before that,
// what is known of the inference.
void add_times(Page& page, std::string title, const std::vector<Idle::OfProcess>& processes,
               const Execution& execution, std::size_t at_most, bool with_inference,
               const Durations& (*times_of)(const Idle::OfProcess&)) {
  const Idle& idle = execution.idle();
  Table table(std::move(title),
              {{"share"}, {"total"}, {"times"}, {"p50", 1}, {"p99", 2}, {"longest"}});
  InferenceTime inference = execution.inference();
  if (std::uint64_t all = inference.end - inference.begin; with_inference && all)
    table.row(processes.size() > 1
                  ? fmt::format("inference, {}", name_of(*execution.process(), idle.names()))
                  : "inference",
              {percent(execution.idle_in_inference(), all),
               human_time(execution.idle_in_inference()), "", "", "", ""});
  auto row = [&](std::string name, const Idle::OfProcess& process) {
    const Durations& times = times_of(process);
    if (!times.count()) return;
    table.row(std::move(name),
              {percent(times.total(), process.working_time), human_time(times.total()),
               human_count(times.count()), human_time(times.quantile(0.5)),
               human_time(times.quantile(0.99)), human_time(times.max())});
  };
  Idle::OfProcess others = idle.others();
  std::uint64_t count = idle.other_processes();
  for (std::size_t i = 0; i < processes.size(); i++) {
    const Idle::OfProcess& process = processes[i];
    if (i < at_most) {
      row(name_of(process, idle.names()), process);
    } else {
      others.add(process);
      count++;
    }
  }
  row(count_of(count, "other process", "other processes"), others);
  if (!table.empty()) table.add_to(page);
}

// What the times do not say by themselves.
void add_notes(Page& page, const Idle::OfProcess& process, const Names& names) {
  auto note = [&](const std::string& text) { page.paragraph(text, 2); };
  std::string name = name_of(process, names);
  if (process.idle.count())
    note(fmt::format("For {} of that idle time {} was outside CUDA calls.",
                     outside_calls(process.idle.total(), process.in_calls, process.untimed), name));
  else if (!process.lost_track)
    note(fmt::format(
        "The GPU was never seen to be idle for {}: something was pending all the time.", name));
  if (process.lost_track)
    note(
        fmt::format("The work of {} was in more streams than are followed: whether the GPU was "
                    "idle after that is not known.",
                    name));
  if (process.untimed_waits)
    note(
        fmt::format("{} of {} have no return in this trace: whether the GPU was idle after them "
                    "is not known.",
                    count_of(process.untimed_waits, "wait", "waits"), name));
}

Json process_json(const Idle::OfProcess& process, const Names& names) {
  Json meanwhile = Json::object();
  for (auto [name, time] : process.meanwhile)
    meanwhile[std::string(names.text({name}))] = microseconds(time);
  return {{"working_time_us", microseconds(process.working_time)},
          {"idle", times_json(process.idle, Means::mean)},
          {"idle_in_calls_us", microseconds(process.in_calls)},
          {"idle_in_calls", meanwhile},
          {"idle_untimed_calls", process.untimed},
          {"between_launches", times_json(process.between, Means::mean)},
          {"untimed_waits", process.untimed_waits},
          {"lost_track", process.lost_track}};
}

}  // namespace

Json idle_json(const Idle& idle, std::size_t gaps_at_most) {
  const Names& names = idle.names();
  Json processes = Json::array();
  for (const auto& process : idle.processes()) {
    Json one = {{"pid", process.pid},
                {"comm", names.text(process.comm)},
                {"first_work_us", microseconds(process.first_work)},
                {"last_work_us", microseconds(process.last_work)}};
    one.update(process_json(process, names));
    processes.push_back(std::move(one));
  }
  auto list = [&](std::span<const Gap> gaps) {
    return list_of(gaps, GAP_COLUMNS, GapsShown{names});
  };
  Json json = {{"processes", processes},
               {"longest_idle", list(idle.longest_idle(gaps_at_most))},
               {"longest_between", list(idle.longest_between(gaps_at_most))}};
  if (std::uint64_t count = idle.other_processes()) {
    json["other_processes"] = {{"count", count}};
    json["other_processes"].update(process_json(idle.others(), names));
  }
  return json;
}

Json gaps_columns() { return page_columns(GAP_COLUMNS); }

void add_idle_times(Page& page, const Execution& execution, std::size_t at_most, GapsBy by) {
  const Idle& idle = execution.idle();
  const GpusAtWork& gpus = execution.gpus();
  // In a part of the trace all is of that part.
  InferenceTime inference = execution.is_of_part() ? InferenceTime() : execution.inference();
  if (gpus.measured()) add_gpus_at_work(page, gpus, inference, at_most, by);
  std::vector<Idle::OfProcess> processes = idle.processes();
  HashSet<std::uint32_t> measured;
  for (const auto& process : processes)
    if (gpus.is_measured(process.number)) measured.insert(process.pid);
  std::erase_if(processes, [&](const auto& process) { return gpus.is_measured(process.number); });
  if (processes.empty() && !idle.other_processes() && gpus.measured()) return;
  auto unmeasured = [&](std::span<const Gap> all) {
    std::vector<Gap> gaps(all.begin(), all.end());
    std::erase_if(gaps, [&](const Gap& gap) { return measured.contains(gap.pid); });
    return gaps;
  };
  bool several = idle.processes().size() > 1;
  bool with_inference =
      inference.end && execution.process() && !gpus.is_measured(execution.process()->number);
  add_times(page, "GPU idle, at least", processes, execution, at_most, with_inference,
            [](const Idle::OfProcess& process) -> const Durations& { return process.idle; });
  for (std::size_t i = 0; i < std::min(at_most, processes.size()); i++)
    add_notes(page, processes[i], idle.names());
  if (idle.processes().empty()) page.line("Nothing was launched or copied.");
  if (by != GapsBy::gap)
    add_idle_by_range(
        page, "idle by {}, at least",
        idle.idle_by_range().rows(
            idle.names(), [&](std::uint64_t process) { return !gpus.is_measured(process); }),
        at_most, by);
  else
    add_gaps(page, "longest idle", unmeasured(idle.longest_idle()), idle.names(), several);
  add_times(page, "from a launch to the next", processes, execution, at_most, false,
            [](const Idle::OfProcess& process) -> const Durations& { return process.between; });
  if (std::any_of(processes.begin(), processes.end(),
                  [](const auto& process) { return process.between.count() > 0; }))
    page.paragraph(
        "From a launch's return to the process's next launch, with no wait between them: what the "
        "GPU did then is not known.",
        2);
  if (by == GapsBy::gap)
    add_gaps(page, "longest from a launch to the next", unmeasured(idle.longest_between()),
             idle.names(), several);
  if (!gpus.measured()) add_gpu_notes(page, gpus);
}

}  // namespace cudabpf::analyze
