// What is shown of GPUs' work besides kernels: copies, fills, and how long work was queued.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/columns.hpp"
#include "analyze/questions/measured_operations.hpp"

namespace cudabpf::analyze {

namespace {

constexpr double NS_PER_SECOND = 1e9;

// Bytes per second of the time on the GPU; 0: not known.
double bandwidth(const OperationFigures& figures) {
  if (!figures.times.total()) return 0;
  return static_cast<double>(figures.bytes) * NS_PER_SECOND /
         static_cast<double>(figures.times.total());
}

constexpr auto bandwidth_text = [](const MeasuredOperations::OfDirection& of) {
  double rate = bandwidth(of.figures);
  return rate > 0 ? human_rate(rate) : std::string();
};

Json gpu_times_json(const Durations& times) { return times_json(times, Means::mean_and_min); }

using Moved = MeasuredOperations::OfDirection;
constexpr auto FIGURES = &Moved::figures;
constexpr auto MOVING = &OperationFigures::times;

constexpr Column<Moved> COPY_COLUMNS[] = {
    {{"direction"}, As::text, its<&Moved::name>},
    {{nullptr, "count"}, As::count, its<FIGURES, MOVING, number_of>},
    {{"bytes", "bytes"}, As::bytes, its<FIGURES, &OperationFigures::bytes>},
    {{"bytes_per_second"},
     As::object,
     [](auto& of) { return of.figures.times.total() ? Json(bandwidth(of.figures)) : Json(); }},
    {{"gpu"}, As::object, its<FIGURES, MOVING, gpu_times_json>},
    {{"gpu.total_us", "GPU time"}, As::time, its<FIGURES, MOVING, &Durations::total>},
    {{nullptr, "bandwidth"}, As::word, bandwidth_text},
    {{"gpu.mean_us", "mean", 1}, As::time, its<FIGURES, MOVING, mean_of>},
    {{"gpu.p50_us", "p50", 2}, As::time, its<FIGURES, MOVING, p50_of>},
    {{"gpu.p99_us", "p99", 2}, As::time, its<FIGURES, MOVING, p99_of>},
    {{"gpu.max_us", "max", 3}, As::time, its<FIGURES, MOVING, max_of>},
    {{"queue"}, As::object, its<FIGURES, &OperationFigures::queued, gpu_times_json>},
};

}  // namespace

Json measured_operations_json(const MeasuredOperations& operations) {
  Json json = {{"graphs", operations.whole_graphs() ? "whole" : "nodes"},
               {"kernels", gpu_times_json(operations.kernels().times)},
               {"kernels_queue", gpu_times_json(operations.kernels().queued)},
               {"graph_launches", gpu_times_json(operations.graph_launches().times)},
               {"graph_launches_queue", gpu_times_json(operations.graph_launches().queued)},
               {"copies", list_of(operations.copies(), COPY_COLUMNS)}};
  if (const OperationFigures* unknown = operations.graph(nullptr))
    json["unknown_graph_launches"] = gpu_times_json(unknown->times);
  return json;
}

void add_copies(Page& page, const MeasuredOperations& operations) {
  std::vector<MeasuredOperations::OfDirection> all = operations.copies();
  if (all.empty()) return;
  Table table = table_of("copies and fills", COPY_COLUMNS);
  auto cells = cells_in(COPY_COLUMNS, page);
  for (const Moved& of : all) table.row(of.name, cells(of));
  table.add_to(page);
}

void add_queue_note(Page& page, const MeasuredOperations& operations) {
  auto note = [&](std::string_view what, const Durations& queued) {
    if (!queued.count()) return;
    page.paragraph(
        fmt::format("From the beginning of the launching call until {} began on the GPU: p50 {}, "
                    "p99 {}.",
                    what, human_time(queued.quantile(0.5)), human_time(queued.quantile(0.99))),
        2);
  };
  note("a kernel", operations.kernels().queued);
  note("a graph", operations.graph_launches().queued);
}

}  // namespace cudabpf::analyze
