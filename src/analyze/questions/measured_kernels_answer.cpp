// The answer about a trace's kernels where it has measured how long GPUs took for them.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/questions/kernels.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

std::string share_or_blank(const Durations& times, const Kernels& kernels) {
  return times.count() ? percent(times.total(), kernels.gpu().kernels().times.total()) : "";
}

void add_measured_classes(Page& page, const Kernels& kernels) {
  Table table("classes", {{"kernels"},
                          {"configurations", 4},
                          {"launches", 3},
                          {"in graphs", 3},
                          {"runs"},
                          {"GPU time"},
                          {"share"},
                          {"mean", 1},
                          {"p50", 2},
                          {"p99", 2},
                          {"max", 3}});
  auto cells = [&](const Kernels::OfClass& of) -> std::vector<std::string> {
    const Durations& times = of.gpu.times;
    return {human_count(of.kernels),
            human_count(of.configurations),
            human_count(of.count),
            figure_or_blank(of.in_graphs),
            figure_or_blank(times.count()),
            time_or_blank(times, times.total()),
            share_or_blank(times, kernels),
            time_or_blank(times, times.mean()),
            time_or_blank(times, times.quantile(0.5)),
            time_or_blank(times, times.quantile(0.99)),
            time_or_blank(times, times.max())};
  };
  Kernels::OfClass all;
  auto classes = kernels.classes();
  for (const Kernels::OfClass& of : classes) {
    table.row(of.name, cells(of));
    all.add(of);
  }
  if (classes.size() > 1) table.row("all", cells(all));
  if (!table.empty()) table.add_to(page);
}

void add_table(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most) {
  bool folded = by == Kernels::By::name;
  constexpr std::size_t NAME_ROOM = 24;
  Table table("kernels",
              {{"class", 3, true},
               {"configurations", 5},
               {"grid", 2},
               {"block", 2},
               {"shared", 6},
               {"launches", 5},
               {"in graphs", 6},
               {"failed", 6},
               {"first", 8},
               {"last", 8},
               {"runs"},
               {"GPU time"},
               {"share"},
               {"mean"},
               {"p50", 1},
               {"p99", 1},
               {"min", 4},
               {"max", 4},
               {"CPU p50", 7}},
              NAME_ROOM);
  std::vector<Kernels::Figures> all = kernels.figures(by);
  if (all.empty()) return;
  add_rows(table, all, at_most, folded ? "kernels" : "configurations",
           [&](const Kernels::Figures& of) -> std::vector<std::string> {
             const Durations& times = of.gpu.times;
             return {of.full.empty() ? "" : std::string(to_string(of.kernel_class)),
                     folded ? human_count(of.configurations) : "",
                     dimensions_text(of.launch.grid),
                     dimensions_text(of.launch.block),
                     shared_memory_text(of.launch),
                     human_count(of.count),
                     figure_or_blank(of.in_graphs),
                     figure_or_blank(of.failed),
                     of.launched() ? page.at(of.first) : "",
                     of.launched() ? page.at(of.last) : "",
                     figure_or_blank(times.count()),
                     time_or_blank(times, times.total()),
                     share_or_blank(times, kernels),
                     time_or_blank(times, times.mean()),
                     time_or_blank(times, times.quantile(0.5)),
                     time_or_blank(times, times.quantile(0.99)),
                     time_or_blank(times, times.min()),
                     time_or_blank(times, times.max()),
                     time_or_blank(of.calls, of.calls.quantile(0.5))};
           });
  table.add_to(page);
}

void add_measured_notes(Page& page, const Kernels& kernels) {
  const Kernels::Totals& totals = kernels.totals();
  auto note = [&](const std::string& text) { page.paragraph(text, 2); };
  page.blank();
  add_queue_note(page, kernels.gpu());
  std::uint64_t measured = kernels.gpu().kernels().times.count();
  // Kernels in graphs have no lines of their own where graphs were measured as a whole.
  bool whole = kernels.gpu().whole_graphs();
  if (whole)
    note("Launches of graphs were measured as a whole: the kernels in graphs have no times.");
  std::uint64_t asked = whole ? totals.ran : totals.runs();
  if (measured != asked)
    note(fmt::format("{} measured; the calls in the trace asked for {}.",
                     count_of(measured, "run of a kernel was", "runs of kernels were"),
                     human_count(asked)));
  if (!measured) return;
  note(
      "Runs and times are those measured on the GPU. Kernels that ran at the same time each count "
      "in full.");
}

}  // namespace

void add_measured_kernels(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most) {
  if (!kernels.gpu().kernels().times.count())
    page.line(kernels.totals().runs() ? "No run of a kernel was measured." : "No kernel ran.");
  add_measured_classes(page, kernels);
  add_table(page, kernels, by, at_most);
  add_copies(page, kernels.gpu());
  add_graphs(page, kernels, at_most);
  add_measured_notes(page, kernels);
  add_kernel_notes(page, kernels);
}

}  // namespace cudabpf::analyze
