// The answer about a trace's kernels where it has measured how long GPUs took for them.
#include <fmt/format.h>

#include "analyze/questions/kernels.hpp"

namespace cudabpf::analyze {

namespace {

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
  std::uint64_t issued = whole ? totals.ran : totals.runs();
  if (measured != issued)
    note(fmt::format("{} measured; the calls in the trace asked for {}.",
                     count_of(measured, "run of a kernel was", "runs of kernels were"),
                     human_count(issued)));
  if (!measured) return;
  note(
      "Runs and times are those measured on the GPU. Kernels that ran at the same time each count "
      "in full.");
}

}  // namespace

void add_measured_kernels(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most) {
  if (!kernels.gpu().kernels().times.count())
    page.line(kernels.totals().runs() ? "No run of a kernel was measured." : "No kernel ran.");
  add_kernel_tables(page, kernels, by, at_most);
  add_copies(page, kernels.gpu());
  add_graphs(page, kernels, at_most);
  add_measured_notes(page, kernels);
  add_kernel_notes(page, kernels);
}

}  // namespace cudabpf::analyze
