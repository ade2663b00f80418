// What is told of GPUs' work besides kernels: copies, fills, and how long work was queued.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/questions/measured_works.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

constexpr double NS_PER_SECOND = 1e9;

// Bytes per second of the time on the GPU; 0: not known.
double bandwidth(const WorkFigures& figures) {
  if (!figures.times.total()) return 0;
  return static_cast<double>(figures.bytes) * NS_PER_SECOND /
         static_cast<double>(figures.times.total());
}

std::string bandwidth_text(const WorkFigures& figures) {
  constexpr double LIMIT = 1e18;  // a trace may claim anything
  double rate = bandwidth(figures);
  if (!(rate > 0)) return "";
  return human_bytes(static_cast<std::uint64_t>(std::min(rate, LIMIT))) + "/s";
}

}  // namespace

Json gpu_times_json(const Durations& times) {
  Json json = {{"count", times.count()}, {"total_us", microseconds(times.total())}};
  if (!times.count()) return json;
  json["mean_us"] = microseconds(times.mean());
  json["min_us"] = microseconds(times.min());
  json["p50_us"] = microseconds(times.quantile(0.5));
  json["p99_us"] = microseconds(times.quantile(0.99));
  json["max_us"] = microseconds(times.max());
  return json;
}

Json measured_works_json(const MeasuredWorks& works) {
  Json json = {{"graphs", works.whole_graphs() ? "whole" : "nodes"},
               {"kernels", gpu_times_json(works.kernels().times)},
               {"kernels_queue", gpu_times_json(works.kernels().queued)},
               {"graph_launches", gpu_times_json(works.graph_launches().times)},
               {"graph_launches_queue", gpu_times_json(works.graph_launches().queued)},
               {"copies", Json::array()}};
  if (const WorkFigures* unknown = works.graph(nullptr))
    json["unknown_graph_launches"] = gpu_times_json(unknown->times);
  for (const MeasuredWorks::OfDirection& of : works.copies())
    json["copies"].push_back(
        {{"direction", of.name},
         {"bytes", of.figures.bytes},
         {"bytes_per_second", of.figures.times.total() ? Json(bandwidth(of.figures)) : Json()},
         {"gpu", gpu_times_json(of.figures.times)},
         {"queue", gpu_times_json(of.figures.queued)}});
  return json;
}

void add_copies(Page& page, const MeasuredWorks& works) {
  std::vector<MeasuredWorks::OfDirection> all = works.copies();
  if (all.empty()) return;
  Table table("copies and fills", {{"count"},
                                   {"bytes"},
                                   {"GPU time"},
                                   {"bandwidth"},
                                   {"mean", 1},
                                   {"p50", 2},
                                   {"p99", 2},
                                   {"max", 3}});
  for (const MeasuredWorks::OfDirection& of : all) {
    const Durations& times = of.figures.times;
    table.row(of.name, {human_count(times.count()), human_bytes(of.figures.bytes),
                        human_time(times.total()), bandwidth_text(of.figures),
                        human_time(times.mean()), human_time(times.quantile(0.5)),
                        human_time(times.quantile(0.99)), human_time(times.max())});
  }
  table.add_to(page);
}

void add_queue_note(Page& page, const MeasuredWorks& works) {
  auto note = [&](std::string_view what, const Durations& queued) {
    if (!queued.count()) return;
    page.paragraph(
        fmt::format("From the beginning of the launching call until {} began on the GPU: p50 {}, "
                    "p99 {}.",
                    what, human_time(queued.quantile(0.5)), human_time(queued.quantile(0.99))),
        2);
  };
  note("a kernel", works.kernels().queued);
  note("a graph", works.graph_launches().queued);
}

}  // namespace cudabpf::analyze
