// The answer about a trace's kernels.
#include <fmt/format.h>

#include "analyze/columns.hpp"
#include "analyze/questions/kernels.hpp"

namespace cudabpf::analyze {

namespace {

struct KernelsShown {
  const Kernels& kernels;
  bool folded = false;  // by name

  bool measured() const { return kernels.gpu().measured(); }
  bool has_runs() const {  // not every launch was one run
    const Kernels::Totals& totals = kernels.totals();
    return totals.in_graphs || totals.ran != totals.launches;
  }
};

// What both classes and kernels have. The tables' other form is where GPUs' work was measured: the
// figures that are the CPU's are not in it.
constexpr auto of_cpu = [](const KernelsShown& shown, auto&& of) {
  Value value = value_of(of);
  value.in_table &= !shown.measured();
  return value;
};
template <auto... Steps>
constexpr auto its_of_cpu =
    [](auto& of, auto& shown) { return of_cpu(shown, step_by_step<Steps...>(of)); };
constexpr auto runs_shown = [](auto& of, auto& shown) {
  return of_cpu(shown, shown_if(shown.has_runs(), of.runs()));
};
constexpr auto share_of_runs = [](auto& of, auto& shown) {
  return of_cpu(shown, share(of.runs(), shown.kernels.totals().runs()));
};
constexpr auto gpu_share = [](auto& of, auto& shown) {
  double part = share(of.gpu.times.total(), shown.kernels.gpu().kernels().times.total());
  return Value{part, shown.measured(), of.gpu.times.count() > 0};
};
template <auto Times>
constexpr auto if_measured = [](auto& of, auto& shown) {
  return known_if(shown.measured(), times_json(of.gpu.*Times, Means::mean_and_min));
};
constexpr auto on_gpu = &OperationFigures::times;

using Class = Kernels::OfClass;
constexpr Column<Class, KernelsShown> CLASS_COLUMNS[] = {
    {{"class"}, As::text, its<&Class::name>, {1, "class"}},
    {{"kernels", "kernels"}, As::count, its<&Class::kernels>, {4, "kernels"}},
    {{"configurations", "configurations", 2, 4}, As::count, its<&Class::configurations>},
    {{"count", "launches", 0, 3}, As::count, its<&Class::count>},
    {{"in_graphs", "in graphs", 3}, As::figure, its<&Class::in_graphs>},
    {{"runs", "runs"}, As::count, runs_shown, {2, "runs"}},
    {{"share", "share"}, As::percent, share_of_runs, {3, "share"}},
    {{"call"}, As::object, [](auto& of) { return times_json(of.calls); }},
    {{"call.total_us", "CPU time"},
     As::time,
     its_of_cpu<&Class::calls, total_of>,
     {6, "launching"}},
    {{"call.p50_us", "p50", 1}, As::time, its_of_cpu<&Class::calls, p50_of>},
    {{"gpu"}, As::object, if_measured<on_gpu>},
    {{"gpu.count", "runs"}, As::figure, its<&Class::gpu, on_gpu, number_of>},
    {{"gpu.total_us", "GPU time"}, As::time, its<&Class::gpu, on_gpu, total_of>, {5, "on the GPU"}},
    {{"gpu_share", "share"}, As::percent, gpu_share},
    {{"gpu.mean_us", "mean", 1}, As::time, its<&Class::gpu, on_gpu, mean_of>},
    {{"gpu.p50_us", "p50", 2}, As::time, its<&Class::gpu, on_gpu, p50_of>},
    {{"gpu.p99_us", "p99", 2}, As::time, its<&Class::gpu, on_gpu, p99_of>},
    {{"gpu.max_us", "max", 3}, As::time, its<&Class::gpu, on_gpu, max_of>},
    {{"queue"}, As::object, if_measured<&OperationFigures::queued>},
};

// A member of a launch, if its configuration is known.
template <auto Member>
constexpr auto configured =
    [](const Kernels::Figures& of) { return known_if(of.launch.grid[0], of.launch.*Member); };
// A member of a kernel that was launched, by a call or in a graph.
template <auto Member>
constexpr auto launched_at =
    [](const Kernels::Figures& of) { return of.launched() ? Json(of.*Member) : Json(); };

using Kernel = Kernels::Figures;
constexpr Column<Kernel, KernelsShown> KERNEL_COLUMNS[] = {
    {{"kernel"},
     As::text,
     [](auto& of) { return of.launch.kernel ? Json(of.full) : Json(); },
     {1, "kernel", WIDE}},
    {{"handle"},
     As::text,
     [](auto& of) { return known_if(of.launch.handle, hexadecimal(of.launch.handle)); }},
    {{"class", "class", 3},
     As::text,
     [](auto& of) { return shown_if(!of.full.empty(), to_string(of.kernel_class)); },
     {3, "class"}},
    {{nullptr, "configurations", 1, 5},
     As::count,
     [](auto& of, auto& shown) { return shown_if(shown.folded, of.configurations); }},
    {{"grid", "grid", 1, 2}, As::dimensions, configured<&Kernels::Launch::grid>, {6, "grid"}},
    {{"block", "block", 1, 2}, As::dimensions, configured<&Kernels::Launch::block>, {7, "block"}},
    {{"shared"}, As::bytes, configured<&Kernels::Launch::shared>},
    {{nullptr, "shared", 4, 6},
     As::word,
     [](const Kernel& of) {
       const Kernels::Launch& launch = of.launch;
       return shown_if(launch.grid[0], launch.shared ? human_bytes(launch.shared) : "0");
     }},
    {{"configurations"},
     As::count,
     [](auto& of) { return known_if(!of.launch.grid[0], of.configurations); }},
    {{"count"}, As::count, its<&Kernel::count>},
    {{nullptr, "count"}, As::count, its_of_cpu<&Kernel::count>},
    {{nullptr, "launches", 5},
     As::count,
     [](auto& of, auto& shown) { return shown_if(shown.measured(), of.count); }},
    {{"in_graphs", "in graphs", 4, 6}, As::figure, its<&Kernel::in_graphs>, {8, "in graphs"}},
    {{"runs", "runs"}, As::count, runs_shown, {2, "runs"}},
    {{"share", "share"}, As::percent, share_of_runs},
    {{"failed", "failed", 0, 6}, As::figure, its<&Kernel::failed>},
    {{"first_ts", "first", 6, 8}, As::moment, launched_at<&Kernel::first>},
    {{"last_ts", "last", 6, 8}, As::moment, launched_at<&Kernel::last>},
    {{"call"}, As::object, [](auto& of) { return times_json(of.calls); }},
    {{"gap_after"}, As::object, [](auto& of) { return times_json(of.gaps); }},
    {{"gpu"}, As::object, if_measured<on_gpu>},
    {{"gpu.count", "runs"}, As::figure, its<&Kernel::gpu, on_gpu, number_of>},
    {{"gpu.total_us", "GPU time"},
     As::time,
     its<&Kernel::gpu, on_gpu, total_of>,
     {4, "on the GPU", BAR | IF_KNOWN}},
    {{"gpu_share", "share"}, As::percent, gpu_share},
    {{"gpu.mean_us", "mean"}, As::time, its<&Kernel::gpu, on_gpu, mean_of>},
    {{"gpu.p50_us", "p50", 1},
     As::time,
     its<&Kernel::gpu, on_gpu, p50_of>,
     {5, "p50 on the GPU", IF_KNOWN}},
    {{"gpu.p99_us", "p99", 1}, As::time, its<&Kernel::gpu, on_gpu, p99_of>},
    {{"gpu.min_us", "min", 4}, As::time, its<&Kernel::gpu, on_gpu, min_of>},
    {{"gpu.max_us", "max", 4}, As::time, its<&Kernel::gpu, on_gpu, max_of>},
    {{"call.total_us"}, As::time, {9, "launching"}},
    {{"call.p50_us", "CPU p50", 5, 7}, As::time, its<&Kernel::calls, p50_of>},
    {{"gap_after.p50_us", "gap p50", 2}, As::time, its_of_cpu<&Kernel::gaps, p50_of>},
    {{"queue"}, As::object, if_measured<&OperationFigures::queued>},
};

void add_classes(Page& page, const KernelsShown& shown) {
  Table table = table_of("classes", CLASS_COLUMNS, 26, shown.measured());
  auto cells = cells_in(CLASS_COLUMNS, page, shown);
  Kernels::OfClass all;
  auto classes = shown.kernels.classes();
  for (const Kernels::OfClass& of : classes) {
    table.row(of.name, cells(of));
    all.add(of);
  }
  if (classes.size() > 1) table.row("all", cells(all));
  if (!table.empty()) table.add_to(page);
}

Json totals_json(const Kernels& kernels) {
  const Kernels::Totals& totals = kernels.totals();
  return {{"count", totals.launches},
          {"runs", totals.runs()},
          {"in_graphs", totals.in_graphs},
          {"failed", totals.failed},
          {"unnamed", totals.unnamed},
          {"without_return", totals.without_return},
          {"nested", totals.nested},
          {"captured", totals.captured},
          {"graph_launches", totals.graphs},
          {"failed_graph_launches", totals.failed_graphs},
          {"known_graph_launches", kernels.graph_launches().known()},
          {"unknown_graph_launches", unknown_graphs_json(kernels.graph_launches())},
          {"not_listed_in_graphs", totals.unlisted},
          {"not_kept_apart", totals.not_kept_apart}};
}

}  // namespace

// What the figures do not say by themselves.
void add_kernel_notes(Page& page, const Kernels& kernels) {
  const Kernels::Totals& totals = kernels.totals();
  auto note = [&](const std::string& text) { page.paragraph(text, 2); };
  page.blank();
  add_graph_notes(page, kernels);
  if (totals.captured)
    note(
        fmt::format("{} while the stream was captured, and went into a graph instead of being "
                    "run.",
                    count_of(totals.captured, "launch was made", "launches were made")));
  if (totals.nested)
    note(fmt::format("{} inside of another call, and counted as that.",
                     count_of(totals.nested, "launch was made", "launches were made")));
  if (totals.unnamed)
    note(fmt::format("{} of kernels whose name is not known.",
                     count_of(totals.unnamed, "launch", "launches")));
  if (totals.without_return)
    note(
        fmt::format("{} without a return in the trace: when the call came back, and how long it "
                    "was until the next one, is not known.",
                    count_of(totals.without_return, "launch", "launches")));
  if (totals.not_kept_apart)
    note(fmt::format("{} of configurations that were too many to be kept apart.",
                     count_of(totals.not_kept_apart, "launch", "launches")));
  if (!totals.launches || kernels.gpu().measured()) return;
  std::string text =
      "Times are the CPU's: of the launching call, and of the gap from its return to the next "
      "launch on the same stream.";
  // Where it was recorded with that, every answer says why there are none.
  if (!kernels.gpu().was_wanted())
    text += " To see how long kernels ran on the GPU, record with --gpu.";
  note(text);
}

void add_kernel_tables(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most) {
  KernelsShown shown{kernels, by != Kernels::By::configuration};
  add_classes(page, shown);
  const std::size_t name_room = shown.measured() ? 24 : 36;
  auto cells = cells_in(KERNEL_COLUMNS, page, shown);
  if (by == Kernels::By::range) {
    for (const Kernels::Group& group : kernels.groups()) {
      Table table = table_of(printable(group.name), KERNEL_COLUMNS, name_room, shown.measured());
      add_rows(table, group.kernels, at_most, "kernels", cells);
      if (group.kernels.size() > 1) table.row("all", cells(group.all));
      table.add_to(page);
    }
    return;
  }
  Table table = table_of("kernels", KERNEL_COLUMNS, name_room, shown.measured());
  add_rows(table, kernels.figures(by), at_most, shown.folded ? "kernels" : "configurations", cells);
  if (!table.empty()) table.add_to(page);
}

Json kernel_json(const Kernels::Figures& figures, const Kernels& kernels) {
  return json_of(figures, KERNEL_COLUMNS, KernelsShown{kernels});
}

// Columns that one kernel has, and several do not.
constexpr std::size_t OF_ONE_KERNEL = 3;

Json kernels_by_range_json(const Kernels& kernels) {
  KernelsShown shown{kernels};
  Json json = Json::array();
  for (const Kernels::Group& group : kernels.groups()) {
    Json one = {{"group", group.name}};
    one.update(json_of(group.all, std::span(KERNEL_COLUMNS).subspan(OF_ONE_KERNEL), shown));
    one["kernels"] = list_of(group.kernels, KERNEL_COLUMNS, shown);
    json.push_back(std::move(one));
  }
  return json;
}

Json kernels_json(const Kernels& kernels, Kernels::By by) {
  KernelsShown shown{kernels};
  Json json = {
      {"launches", totals_json(kernels)},
      {"classes", list_of(kernels.classes(), CLASS_COLUMNS, shown)},
      {"kernels", by == Kernels::By::range ? kernels_by_range_json(kernels)
                                           : list_of(kernels.figures(by), KERNEL_COLUMNS, shown)},
      {"graphs", graphs_json(kernels)}};
  if (kernels.gpu().measured()) json["gpu"] = measured_operations_json(kernels.gpu());
  return json;
}

Json kernels_columns() {
  return {{"kernels", page_columns(KERNEL_COLUMNS)},
          {"classes", page_columns(CLASS_COLUMNS)},
          {"graphs", graphs_columns()}};
}

void add_kernels(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most) {
  if (kernels.gpu().measured()) return add_measured_kernels(page, kernels, by, at_most);
  const Kernels::Totals& totals = kernels.totals();
  if (!totals.launches && !totals.in_graphs) {
    page.line(kernels.lacks_launches() ? "No launch is in this trace, which does not have them all."
                                       : "No kernel was launched.");
    if (totals.graphs) add_kernel_notes(page, kernels);
    return;
  }
  add_kernel_tables(page, kernels, by, at_most);
  add_graphs(page, kernels, at_most);
  add_kernel_notes(page, kernels);
}

}  // namespace cudabpf::analyze
