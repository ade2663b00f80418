// The answer about when GPUs worked.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/columns.hpp"
#include "analyze/gaps/gpus_at_work.hpp"
#include "analyze/gaps/idle.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

using OfGpu = GpusAtWork::OfGpu;

Json op_json(const Busy::OfOp& of) {
  return {{"count", of.count},
          {"sum_us", microseconds(of.sum)},
          {"union_us", microseconds(of.united.total())}};
}

Json all_communication_json(const OfGpu& gpu) {
  Json json = {{"count", gpu.busy.communication().count},
               {"sum_us", microseconds(gpu.busy.communication().sum)}};
  json.update(communication_json(gpu.work_time(), gpu.waiting(), gpu.window()));
  if (gpu.graphs_with_collectives) json["in_whole_graphs"] = gpu.graphs_with_collectives;
  return json;
}

Json functions_json(const std::vector<ThreadTime::InFunction>& functions, const Names& names) {
  Json json = Json::object();
  for (const auto& one : functions)
    json[std::string(names.text(one.name))] = microseconds(one.time);
  return json;
}

std::vector<ThreadTime::InFunction> functions_of(const OfGpu& gpu) {
  std::vector<ThreadTime::InFunction> functions;
  for (auto [name, time] : gpu.meanwhile) functions.push_back({Name{name}, time});
  std::stable_sort(functions.begin(), functions.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  return functions;
}

Json gpu_json(const OfGpu& gpu, const Names& names) {
  Json gaps = Json::object();
  for (std::size_t i = 0; i < IDLE_CAUSES; i++)
    if (gpu.gaps[i]) gaps[std::string(IDLE_CAUSE_INFOS[i].id)] = gpu.gaps[i];
  Json json = {{"pid", gpu.pid},
               {"device", gpu.device},
               {"first_work_us", microseconds(gpu.first)},
               {"last_work_us", microseconds(gpu.last)},
               {"window_us", microseconds(gpu.window())},
               {"busy_us", microseconds(gpu.busy_time())},
               {"idle_us", microseconds(gpu.idle_time())},
               {"busy_share", share(gpu.busy_time(), gpu.window())},
               {"kernels", op_json(gpu.busy.of(GpuOp::kernel))},
               {"copies", op_json(gpu.busy.of(GpuOp::copy))},
               {"fills", op_json(gpu.busy.of(GpuOp::set))},
               {"kernels_and_copies_at_once_us", microseconds(gpu.busy.overlap())},
               {"compute_us", microseconds(gpu.work_time().compute())},
               {"communication", all_communication_json(gpu)},
               {"idle", times_json(gpu.idle, Means::mean)},
               {"idle_by_cause_us", causes_json(gpu.by_cause)},
               {"gaps_by_main_cause", gaps},
               {"idle_in_calls_us", functions_json(functions_of(gpu), names)},
               {"call_to_start", times_json(gpu.to_start, Means::mean)},
               {"call_to_start_on_idle_gpu", times_json(gpu.to_idle_start, Means::mean)},
               {"operations", gpu.operations},
               {"unjoined", gpu.unjoined},
               {"whole_graphs", gpu.graphs},
               {"late", {{"count", gpu.late}, {"time_us", microseconds(gpu.late_time)}}}};
  if (gpu.in_windows)
    json["windows"] = {{"count", gpu.by_window.count()},
                       {"busy_share_error", gpu.by_window.error()}};
  return json;
}

Json side_json(Name name, std::uint64_t call, const Names& names) {
  Json json = {{"name", names.text(name)}};
  if (call) json["call"] = call;
  return json;
}

bool several_processes(const GpusAtWork& times) {
  for (const OfGpu& gpu : times.gpus())
    if (gpu.process != times.gpus().front().process) return true;
  return false;
}

std::string title_of(const OfGpu& gpu, const Names& names, bool several) {
  std::string name = fmt::format("GPU {}", gpu.device);
  return several ? fmt::format("{}, {}", process_name(gpu.pid, names.text(gpu.comm)), name) : name;
}

std::string time_or_none(std::uint64_t time) { return time ? human_time(time) : std::string(); }

// What the process's busiest GPU did in the inference; null: it is not asked for, or not measured.
const OfGpu* working(const GpusAtWork& times, const InferenceTime& inference) {
  return inference.end > inference.begin ? times.of_process(inference.process) : nullptr;
}

void add_busy(Page& page, const GpusAtWork& times, const InferenceTime& inference,
              std::size_t at_most) {
  bool several = several_processes(times);
  Table table("GPU busy, measured", {{"share"},
                                     {"busy"},
                                     {"idle"},
                                     {"of"},
                                     {"kernels", 1},
                                     {"copies", 1},
                                     {"fills", 3},
                                     {"both at once", 2}});
  if (const OfGpu* gpu = working(times, inference)) {
    GpuCurve::Share share = gpu->curve.between(inference.begin, inference.end);
    table.row(
        fmt::format("{}, inference", title_of(*gpu, times.names(), several)),
        {percent(share.busy, share.time), human_time(share.busy), human_time(share.idle_time()),
         human_time(share.time), time_or_none(share.kernels), "", "", ""});
  }
  for (const OfGpu& gpu : first_of(times.gpus(), at_most)) {
    auto united = [&](GpuOp op) { return time_or_none(gpu.busy.of(op).united.total()); };
    table.row(title_of(gpu, times.names(), several),
              {percent(gpu.busy_time(), gpu.window()), human_time(gpu.busy_time()),
               human_time(gpu.idle_time()), human_time(gpu.window()), united(GpuOp::kernel),
               united(GpuOp::copy), united(GpuOp::set), time_or_none(gpu.busy.overlap())});
  }
  table.add_to(page);
}

// How the busy time divides, where there were collectives.
void add_communication(Page& page, const GpusAtWork& times, const InferenceTime& inference,
                       std::size_t at_most) {
  bool several = several_processes(times);
  Table table("of that, collectives",
              {{"exposed"}, {"share"}, {"waiting", 0}, {"for", 1, true}, {"hidden"}, {"compute"}});
  auto row = [&](std::string name, const WorkTime& work, const TimeByRank& waiting,
                 std::uint64_t time) {
    if (!work.communication) return;
    table.row(std::move(name), {human_time(work.exposed), percent(work.exposed, time),
                                time_or_none(time_waited(waiting)), awaited_text(waiting),
                                human_time(work.hidden()), human_time(work.compute())});
  };
  if (const OfGpu* gpu = working(times, inference)) {
    GpuCurve::Share share = gpu->curve.between(inference.begin, inference.end);
    row(fmt::format("{}, inference", title_of(*gpu, times.names(), several)), share, share.waiting,
        share.time);
  }
  for (const OfGpu& gpu : first_of(times.gpus(), at_most))
    row(title_of(gpu, times.names(), several), gpu.work_time(), gpu.waiting(), gpu.window());
  if (table.empty()) return;
  table.add_to(page);
  page.paragraph(
      "Exposed: only collectives ran, which may have waited for other GPUs. Hidden: other work ran "
      "at the same time.",
      2);
}

void add_causes(Page& page, const GpusAtWork& times, std::size_t at_most) {
  bool several = several_processes(times) || times.gpus().size() > 1;
  for (std::size_t i = 0; i < std::min(at_most, times.gpus().size()); i++) {
    const OfGpu& gpu = times.gpus()[i];
    if (!gpu.idle.count()) continue;
    Table table(several ? "why idle: " + title_of(gpu, times.names(), several_processes(times))
                        : "why idle",
                {{"share"}, {"time"}, {"main cause of", 1}});
    for (std::size_t cause = 0; cause < IDLE_CAUSES; cause++)
      if (std::uint64_t time = gpu.by_cause.of[cause])
        table.row(std::string(IDLE_CAUSE_INFOS[cause].text),
                  {percent(time, gpu.idle_time()), human_time(time),
                   gpu.gaps[cause] ? count_of(gpu.gaps[cause], "gap", "gaps") : "none"});
    table.add_to(page);
    std::string text;
    constexpr std::size_t MAX_LISTED = 4;
    auto functions = functions_of(gpu);
    for (std::size_t f = 0; f < std::min(MAX_LISTED, functions.size()); f++)
      text += fmt::format("{}{} {}", f ? ", " : "Idle while the issuing thread was in ",
                          times.names().text(functions[f].name), human_time(functions[f].time));
    if (functions.size() > MAX_LISTED)
      text += ", and " + count_of(functions.size() - MAX_LISTED, "other", "others");
    if (!text.empty()) page.paragraph(text + ".", 2);
    if (gpu.to_idle_start.count())
      page.paragraph(
          fmt::format("From a call to its start on the GPU: p50 {}, p99 {} for work that ended an "
                      "idle time; p50 {}, p99 {} for all.",
                      human_time(gpu.to_idle_start.quantile(0.5)),
                      human_time(gpu.to_idle_start.quantile(0.99)),
                      human_time(gpu.to_start.quantile(0.5)),
                      human_time(gpu.to_start.quantile(0.99))),
          2);
  }
}

struct GpuGapsShown {
  const GpusAtWork& times;
  bool several_processes = false;

  Json side(Name name, std::uint64_t call) const { return side_json(name, call, times.names()); }
  bool several_gpus() const { return times.gpus().size() > 1; }
};
// The call in which the host spent most of the gap, if any.
constexpr auto longest_call = [](const GpuGap& of) {
  const auto& functions = of.meanwhile.functions;
  return functions.empty() ? ThreadTime::InFunction() : functions.front();
};

constexpr Column<GpuGap, GpuGapsShown> GPU_GAP_COLUMNS[] = {
    {{"begin_us", "at"}, As::begin, its<&GpuGap::begin>, {1, "from"}},
    {{"time_us", "time"}, As::time, its<&GpuGap::time>, {2, "idle", BAR}},
    {{"pid", "process", 3},
     As::number,
     [](auto& of, auto& in) { return shown_if(in.several_processes, of.pid); }},
    {{"device", "GPU", 3},
     As::number,
     [](auto& of, auto& in) { return shown_if(in.several_gpus(), of.device); },
     {3, "GPU"}},
    {{"cause"}, As::text, [](auto& of) { return info_of(of.times.main()).id; }, {4, "cause"}},
    {{nullptr, "why"}, As::text, [](auto& of) { return info_of(of.times.main()).text; }},
    {{"by_cause_us"}, As::object, its<&GpuGap::times, causes_json>},
    {{"before"}, As::object, [](auto& of, auto& in) { return in.side(of.before, of.before_call); }},
    {{"before.name"}, As::text, {5, "before it", WIDE}},
    {{"after"}, As::object, [](auto& of, auto& in) { return in.side(of.after, of.after_call); }},
    {{"after.name"}, As::text, {6, "after it", WIDE}},
    {{"in_calls_us"},
     As::object,
     [](auto& of, auto& in) { return functions_json(of.meanwhile.functions, in.times.names()); }},
    {{nullptr, "longest call", 2},
     As::text,
     [](auto& of, auto& in) { return in.times.names().text(longest_call(of).name); }},
    {{nullptr, "", 2}, As::time, its<longest_call, &ThreadTime::InFunction::time, shown_if_any>},
    {{"tid"}, As::number, its<&GpuGap::tid, if_any>},
};

void add_longest(Page& page, const GpusAtWork& times) {
  Table table = table_of("longest idle", GPU_GAP_COLUMNS);
  auto cells = cells_in(GPU_GAP_COLUMNS, page, {times, several_processes(times)});
  for (const GpuGap& gap : times.longest())
    table.row(fmt::format("{} to {}", times.name_of(gap.before), times.name_of(gap.after)),
              cells(gap));
  if (!table.empty()) table.add_to(page);
}

}  // namespace

Json communication_json(const WorkTime& work, const TimeByRank& waiting, std::uint64_t time) {
  Json json = {{"union_us", microseconds(work.communication)},
               {"hidden_us", microseconds(work.hidden())},
               {"exposed_us", microseconds(work.exposed)},
               {"exposed_share", share(work.exposed, time)}};
  if (waiting.empty()) return json;
  json["waiting_us"] = microseconds(time_waited(waiting));
  json["waiting_share"] = share(time_waited(waiting), time);
  Json by_rank = Json::array();
  for (auto [rank, wait] : waiting)
    by_rank.push_back({{"rank", rank}, {"time_us", microseconds(wait)}});
  json["waiting_for"] = std::move(by_rank);
  return json;
}

std::string awaited_text(const TimeByRank& waiting) {
  if (waiting.empty()) return {};
  auto most = std::max_element(waiting.begin(), waiting.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text = fmt::format("rank {}", most->first);
  if (waiting.size() > 1) text += " and " + count_of(waiting.size() - 1, "other", "others");
  return text;
}

Json gpu_share_json(const GpuCurve::Share& share) {
  return {{"time_us", microseconds(share.time)},
          {"busy_us", microseconds(share.busy)},
          {"kernels_us", microseconds(share.kernels)},
          {"compute_us", microseconds(share.compute())},
          {"communication", communication_json(share, share.waiting, share.time)},
          {"idle_us", microseconds(share.idle_time())}};
}

std::string causes_text(const IdleTimes& times, std::uint64_t whole, std::size_t at_most) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < IDLE_CAUSES; i++)
    if (times.of[i]) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return times.of[a] > times.of[b]; });
  std::string text;
  for (std::size_t i = 0; i < std::min(at_most, order.size()); i++)
    text += fmt::format("{}{} {}", i ? ", " : "", IDLE_CAUSE_INFOS[order[i]].text,
                        percent(times.of[order[i]], whole));
  return text;
}

Json gpus_at_work_json(const GpusAtWork& times, std::size_t gaps_at_most) {
  Json gpus = Json::array(), kernels = Json::array(), not_reported = Json::array();
  for (const OfGpu& gpu : times.gpus()) gpus.push_back(gpu_json(gpu, times.names()));
  for (const auto& [name, kernel] : times.kernels())
    kernels.push_back({{"name", times.names().text(name)},
                       {"count", kernel.count},
                       {"time_us", microseconds(kernel.time)},
                       {"max_us", microseconds(kernel.longest)}});
  for (const auto& one : times.not_reported())
    not_reported.push_back({{"pid", one.pid}, {"why", one.why}});
  return {
      {"gpus", gpus},
      {"longest_idle", list_of(times.longest(gaps_at_most), GPU_GAP_COLUMNS, GpuGapsShown{times})},
      {"kernels", kernels},
      {"not_reported", not_reported},
      {"copies_that_waited",
       {{"count", times.waited().calls}, {"time_us", microseconds(times.waited().time)}}},
      {"missing_share", times.missing_share()},
      {"left_out", times.left_out()},
      {"waits_left_out", times.waits_left_out()}};
}

Json gpu_gaps_columns() { return page_columns(GPU_GAP_COLUMNS); }

void add_gpu_kernels(Page& page, const GpusAtWork& times, std::size_t at_most) {
  std::uint64_t all = 0;
  for (const auto& [name, kernel] : times.kernels()) all = saturating_sum(all, kernel.time);
  Table table("kernels, time on the GPU",
              {{"share"}, {"time"}, {"runs"}, {"mean", 1}, {"longest", 1}});
  for (std::size_t i = 0; i < std::min(at_most, times.kernels().size()); i++) {
    const auto& [name, kernel] = times.kernels()[i];
    table.row(times.name_of(name),
              {percent(kernel.time, all), human_time(kernel.time), human_count(kernel.count),
               human_time(kernel.time / kernel.count), human_time(kernel.longest)});
  }
  if (!table.empty()) table.add_to(page);
}

void add_gpu_notes(Page& page, const GpusAtWork& times) {
  auto note = [&](const std::string& text) { page.paragraph(text, 2); };
  std::uint64_t late = 0, unjoined = 0, operations = 0, whole_collectives = 0;
  for (const OfGpu& gpu : times.gpus()) {
    late += gpu.late;
    unjoined += gpu.unjoined;
    operations += gpu.operations;
    whole_collectives += gpu.graphs_with_collectives;
  }
  for (const OfGpu& gpu : times.gpus())
    if (gpu.in_windows)
      note(fmt::format("GPU {}{}: busy for {} of {} ({}){}.", gpu.device,
                       several_processes(times) ? fmt::format(" of process {}", gpu.pid) : "",
                       percent(gpu.busy_time(), gpu.window()), human_time(gpu.window()),
                       count_of(gpu.by_window.count(), "window", "windows"),
                       gpu.by_window.count() > 1 ? fmt::format(", ± {:.1f} as the windows differ",
                                                               100 * gpu.by_window.error())
                                                 : ""));
  if (times.is_whole_graphs())
    note("A launch of a graph counts as busy from its beginning to its end (--gpu=graphs).");
  if (whole_collectives)
    note(fmt::format(
        "It is not known how long collectives took in {}, which were measured as wholes.",
        count_of(whole_collectives, "launch of a graph", "launches of graphs")));
  if (unjoined)
    note(fmt::format("It is not known which call asked for {} of {}.", with_commas(unjoined),
                     count_of(operations, "kernel, copy or fill", "kernels, copies and fills")));
  if (times.missing_share() > 0)
    note(
        fmt::format("{:.1f} % of the work is missing from this trace: the GPU was busy for longer.",
                    times.missing_share()));
  if (late)
    note(
        fmt::format("{} came too late in the trace to be placed: they are counted, but not in the "
                    "GPU's busy time.",
                    count_of(late, "kernel, copy or fill", "kernels, copies and fills")));
  if (std::uint64_t waits = times.waits_left_out())
    note(fmt::format("{} for ranks are more than are kept, and count as transfer.",
                     count_of(waits, "wait", "waits")));
  if (times.left_out())
    note(fmt::format(
        "{} of other GPUs and processes are left out.",
        count_of(times.left_out(), "kernel, copy or fill", "kernels, copies and fills")));
}

void add_gpus_at_work(Page& page, const GpusAtWork& times, const InferenceTime& inference,
                      std::size_t at_most, GapsBy by) {
  constexpr std::size_t GPUS = 16;
  std::size_t shown = std::min(at_most, GPUS);
  if (times.gpus().empty()) page.line("No GPU did anything in this part.");
  if (!times.gpus().empty()) add_busy(page, times, inference, shown);
  add_communication(page, times, inference, shown);
  add_gpu_notes(page, times);
  add_causes(page, times, shown);
  if (by == GapsBy::gap) return add_longest(page, times);
  auto any = [](std::uint64_t) { return true; };
  add_idle_by_range(page, "idle by {}", times.idle_by_range().rows(times.names(), any), at_most,
                    by);
}

}  // namespace cudabpf::analyze
