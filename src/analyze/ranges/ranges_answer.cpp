#include <fmt/format.h>

#include <algorithm>

#include "analyze/columns.hpp"
#include "analyze/ranges/ranges.hpp"

namespace cudabpf::analyze {

namespace {

using RangeRow = RangeTotals::Row;
constexpr auto its_figures = &RangeRow::figures;

constexpr auto mean_of_row = [](const RangeRow& row) {
  return known_if(row.figures.timed, row.figures.timed ? row.figures.total / row.figures.timed : 0);
};
constexpr auto share_of_gpu = [](const RangeRow& row, std::uint64_t all) {
  return known_if(all, share(row.figures.gpu, all));
};

// The context: the time of GPUs' work in all.
constexpr Column<RangeRow, std::uint64_t> RANGE_COLUMNS[] = {
    {{"name"}, As::text, its<&RangeRow::name>},
    {{"domain", "domain", 2}, As::text, its<&RangeRow::domain, if_any>},
    {{"path"}, As::object, its<&RangeRow::path>},
    {{"names", "names", 3},
     As::figure,
     [](const RangeRow& row) { return shown_if(row.names > 1, row.names); }},
    {{"count", "count"}, As::count, its<its_figures, &RangeFigures::count>},
    {{"total_us", "time"},
     As::timed,
     [](const RangeRow& row) { return known_if(row.figures.timed, row.figures.total); }},
    {{"mean_us", "mean"}, As::time, mean_of_row},
    {{"min_us"},
     As::time,
     [](const RangeRow& row) { return known_if(row.figures.timed, row.figures.shortest); }},
    {{"max_us", "max", 1},
     As::time,
     [](const RangeRow& row) { return known_if(row.figures.timed, row.figures.longest); }},
    {{"calls", "calls", 4}, As::count, its<its_figures, &RangeFigures::calls>},
    {{"launches", "kernels"}, As::count, its<its_figures, &RangeFigures::launches>},
    {{"waits_us", "waiting", 5}, As::time, its<its_figures, &RangeFigures::waits, shown_if_any>},
    {{"gpu_us", "GPU time"}, As::time, its<its_figures, &RangeFigures::gpu, shown_if_any>},
    {{"gpu_here_us"}, As::time, its<&RangeRow::gpu_here>},
    {{"gpu_percent", "of GPU"}, As::percent, share_of_gpu},
};

std::string why_none(const RangeTotals& ranges) {
  if (ranges.were_recorded())
    return "The program named no range in this part of the trace. torch.cuda.nvtx, NVTX's nvtx "
           "package for Python and nvtx3 in C++ name them.";
  return "The program's own ranges were not recorded. `cudabpf run --ranges`, `run --gpu` and `run "
         "--inside` record them.";
}

}  // namespace

Json ranges_json(const RangeTotals& ranges) {
  const RangeFigures& outside = ranges.in_none();
  return {{"ranges", list_of(ranges.rows(), RANGE_COLUMNS, ranges.gpu())},
          {"outside",
           {{"calls", outside.calls},
            {"launches", outside.launches},
            {"gpu_us", microseconds(outside.gpu)}}},
          {"gpu_us", microseconds(ranges.gpu())},
          {"marks", ranges.marks()},
          {"unfinished", ranges.unfinished()},
          {"without_name", ranges.unnamed()}};
}

Json outermost_ranges_json(const RangeTotals& ranges) {
  return list_of(ranges.outermost(), RANGE_COLUMNS, ranges.gpu());
}

std::string outermost_ranges_text(const RangeTotals& ranges) {
  constexpr std::size_t SHOWN = 3;
  std::vector<RangeRow> rows = ranges.outermost();
  std::string text;
  for (std::size_t i = 0; i < std::min(SHOWN, rows.size()); i++) {
    const RangeFigures& of = rows[i].figures;
    std::string path;
    for (const std::string& around : rows[i].path) path += around + " / ";
    text += fmt::format("{}{} {}", i ? "; " : "", printable(path + rows[i].name),
                        of.timed ? human_time(of.total) : "an unknown time");
    if (of.count > 1) text += fmt::format(" in {}", with_commas(of.count));
    if (of.gpu) text += fmt::format(", {} on GPUs", human_time(of.gpu));
    if (of.waits) text += fmt::format(", {} waiting", human_time(of.waits));
  }
  if (rows.size() > SHOWN)
    text += "; and " + count_of(rows.size() - SHOWN, "other range", "other ranges");
  return text;
}

void add_ranges(Page& page, const RangeTotals& ranges, std::size_t at_most) {
  const auto& rows = ranges.rows();
  if (rows.empty()) {
    page.paragraph(why_none(ranges), 0);
    return;
  }
  Table table = table_of("ranges", RANGE_COLUMNS, 30);
  auto cells = cells_in(RANGE_COLUMNS, page, ranges.gpu());
  std::size_t shown = rows.size() <= at_most + 1 ? rows.size() : at_most;
  for (std::size_t i = 0; i < shown; i++)
    table.row(std::string(2 * rows[i].depth, ' ') + rows[i].name, cells(rows[i]));
  table.add_to(page);
  auto note = [&](std::uint64_t count, std::string_view one, std::string_view several,
                  std::string_view text) {
    if (count) page.paragraph(fmt::format("{} {}", count_of(count, one, several), text), 2);
  };
  note(rows.size() - shown, "more range is", "more ranges are", "not shown (--top).");
  const RangeFigures& outside = ranges.in_none();
  if (outside.calls || outside.gpu)
    page.paragraph(
        fmt::format("In no range: {}, {}{}.", count_of(outside.calls, "call", "calls"),
                    count_of(outside.launches, "kernel", "kernels"),
                    outside.gpu ? fmt::format(", {} on GPUs ({})", human_time(outside.gpu),
                                              percent(outside.gpu, ranges.gpu()))
                                : std::string()),
        2);
  note(ranges.marks(), "mark.", "marks.", "");
  note(ranges.unfinished(), "range was", "ranges were",
       "open when its process or the trace ended, or its end was lost: counted, and not timed.");
  note(ranges.unnamed(), "range is", "ranges are", "in no row: there was no room for more names.");
}

}  // namespace cudabpf::analyze
