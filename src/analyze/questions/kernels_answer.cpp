// The answer about a trace's kernels.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyze/questions/kernels.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

std::string dimensions_text(const Dimensions& of) {
  if (!of[0]) return "";
  std::string text = std::to_string(of[0]);
  if (of[1] != 1 || of[2] != 1) text += fmt::format("×{}", of[1]);
  if (of[2] != 1) text += fmt::format("×{}", of[2]);
  return text;
}

std::string shared_memory_text(const Kernels::Launch& launch) {
  if (!launch.grid[0]) return "";
  return launch.shared ? human_bytes(launch.shared) : "0";
}

std::string time_or_blank(const Durations& times, std::uint64_t ns) {
  return times.count() ? human_time(ns) : "";
}

namespace {

Json times_json(const Durations& times) {
  Json json = {{"count", times.count()}, {"total_us", microseconds(times.total())}};
  if (!times.count()) return json;
  json["p50_us"] = microseconds(times.quantile(0.5));
  json["p99_us"] = microseconds(times.quantile(0.99));
  json["max_us"] = microseconds(times.max());
  return json;
}

// What was measured of them on the GPU, if anything was.
void add_gpu(Json& json, const WorkFigures& figures, const Kernels& kernels) {
  if (!kernels.gpu().measured()) return;
  json["gpu"] = gpu_times_json(figures.times);
  json["gpu_share"] = share(figures.times.total(), kernels.gpu().kernels().times.total());
  json["queue"] = gpu_times_json(figures.queued);
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

namespace {

// Whether not every launch was one run.
bool shows_runs(const Kernels::Totals& totals) {
  return totals.in_graphs || totals.ran != totals.launches;
}

void add_classes(Page& page, const Kernels& kernels) {
  const Kernels::Totals& totals = kernels.totals();
  Table table("classes", {{"kernels"},
                          {"configurations", 2},
                          {"launches"},
                          {"in graphs", 3},
                          {"runs"},
                          {"share"},
                          {"CPU time"},
                          {"p50", 1}});
  auto cells = [&](const Kernels::OfClass& of) -> std::vector<std::string> {
    return {human_count(of.kernels),
            human_count(of.configurations),
            human_count(of.count),
            figure_or_blank(of.in_graphs),
            shows_runs(totals) ? human_count(of.runs()) : "",
            percent(of.runs(), totals.runs()),
            time_or_blank(of.calls, of.calls.total()),
            time_or_blank(of.calls, of.calls.quantile(0.5))};
  };
  Kernels::OfClass all;
  auto classes = kernels.classes();
  for (const Kernels::OfClass& of : classes) {
    table.row(of.name, cells(of));
    all.add(of);
  }
  if (classes.size() > 1) table.row("all", cells(all));
  table.add_to(page);
}

}  // namespace

Json kernel_json(const Kernels::Figures& figures, const Kernels& kernels) {
  const Kernels::Launch& launch = figures.launch;
  Json json = {{"kernel", launch.kernel ? Json(figures.full) : Json(nullptr)}};
  if (launch.handle) json["handle"] = hexadecimal(launch.handle);
  json["class"] = to_string(figures.kernel_class);
  if (launch.grid[0]) {
    json["grid"] = launch.grid;
    json["block"] = launch.block;
    json["shared"] = launch.shared;
  } else {
    json["configurations"] = figures.configurations;
  }
  json["count"] = figures.count;
  json["in_graphs"] = figures.in_graphs;
  json["runs"] = figures.runs();
  json["share"] = share(figures.runs(), kernels.totals().runs());
  json["failed"] = figures.failed;
  json["first_ts"] = figures.launched() ? Json(figures.first) : Json();
  json["last_ts"] = figures.launched() ? Json(figures.last) : Json();
  json["call"] = times_json(figures.calls);
  json["gap_after"] = times_json(figures.gaps);
  add_gpu(json, figures.gpu, kernels);
  return json;
}

Json kernels_json(const Kernels& kernels, Kernels::By by) {
  std::uint64_t runs = kernels.totals().runs();
  Json json = {{"launches", totals_json(kernels)},
               {"classes", Json::array()},
               {"kernels", Json::array()},
               {"graphs", graphs_json(kernels)}};
  if (kernels.gpu().measured()) json["gpu"] = measured_works_json(kernels.gpu());
  for (const Kernels::OfClass& of : kernels.classes()) {
    Json one = {{"class", of.name},
                {"kernels", of.kernels},
                {"configurations", of.configurations},
                {"count", of.count},
                {"in_graphs", of.in_graphs},
                {"runs", of.runs()},
                {"share", share(of.runs(), runs)},
                {"call", times_json(of.calls)}};
    add_gpu(one, of.gpu, kernels);
    json["classes"].push_back(std::move(one));
  }
  for (const Kernels::Figures& figures : kernels.figures(by))
    json["kernels"].push_back(kernel_json(figures, kernels));
  return json;
}

void add_kernels(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most) {
  if (kernels.gpu().measured()) return add_measured_kernels(page, kernels, by, at_most);
  const Kernels::Totals& totals = kernels.totals();
  if (!totals.launches && !totals.in_graphs) {
    page.line("No kernel was launched.");
    if (totals.graphs) add_kernel_notes(page, kernels);
    return;
  }
  add_classes(page, kernels);
  bool folded = by == Kernels::By::name;
  constexpr std::size_t NAME_ROOM = 36;
  Table table("kernels",
              {{"class", 3, true},
               {"configurations", 1},
               {"grid", 1},
               {"block", 1},
               {"shared", 4},
               {"count"},
               {"in graphs", 4},
               {"runs"},
               {"share"},
               {"failed"},
               {"first", 6},
               {"last", 6},
               {"CPU p50", 5},
               {"gap p50", 2}},
              NAME_ROOM);
  add_rows(table, kernels.figures(by), at_most, folded ? "kernels" : "configurations",
           [&](const Kernels::Figures& of) -> std::vector<std::string> {
             return {of.full.empty() ? "" : std::string(to_string(of.kernel_class)),
                     folded ? human_count(of.configurations) : "",
                     dimensions_text(of.launch.grid),
                     dimensions_text(of.launch.block),
                     shared_memory_text(of.launch),
                     human_count(of.count),
                     figure_or_blank(of.in_graphs),
                     shows_runs(totals) ? human_count(of.runs()) : "",
                     percent(of.runs(), totals.runs()),
                     figure_or_blank(of.failed),
                     page.at(of.first),
                     page.at(of.last),
                     time_or_blank(of.calls, of.calls.quantile(0.5)),
                     time_or_blank(of.gaps, of.gaps.quantile(0.5))};
           });
  table.add_to(page);
  add_graphs(page, kernels, at_most);
  add_kernel_notes(page, kernels);
}

}  // namespace cudabpf::analyze
