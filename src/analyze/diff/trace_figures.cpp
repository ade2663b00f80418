#include "analyze/diff/trace_figures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/text/printable.hpp"

namespace cudabpf::analyze {

namespace {

using Doubt = TraceFigures::Doubt;

struct Spoils {
  std::string_view what;
  Needs about;
};

// What may be wrong after a loss. Other losses, and those of a newer version, may make everything
// wrong.
constexpr Spoils SPOILT_BY_LOSS[] = {
    {"ring_full_return", Need::results | Need::times | Need::waits | Need::memory},
    {"ring_full_process", Need::processes | Need::memory},
    {"ring_full_name", Need::names},
    {"ring_full_driver", Need::driver},
    {"ring_full_gpu", Need::gpu_times},
    {"out_pointer", Need::memory},
    {"driver_return", Needs()},
    {"driver_skipped", Need::driver},
    {"log_overrun", Need::gpu_errors},
    {"table_full", Need::names | Need::memory | Need::copies | Need::results | Need::times},
    {"late_driver", Need::driver},
};

// What may be wrong if calls of a kind were left out on purpose.
constexpr Spoils SPOILT_BY_LEAVING_OUT[] = {
    {"launches", Need::launches},  {"copies", Need::copies}, {"waits", Need::waits},
    {"allocations", Need::memory}, {"frees", Need::memory},
};

template <std::size_t Size>
Needs spoilt_by(std::string_view what, const Spoils (&known)[Size]) {
  const auto* at = std::find_if(std::begin(known), std::end(known),
                                [&](const Spoils& one) { return one.what == what; });
  return at == std::end(known) ? Needs::all() : at->about;
}

// Whether GPUs did, or may have done, operations that the trace lacks: see the end's
// `gpu_operations`.
bool lacks_gpu_operations(const TraceFacts& facts) {
  if (!facts.end || !facts.end->gpu_operations) return false;
  const GpuOperationCounts& operations = *facts.end->gpu_operations;
  auto unjoined = [&](Unjoined why) { return operations.unjoined[static_cast<std::size_t>(why)]; };
  return operations.invalid || unjoined(Unjoined::not_reported) || unjoined(Unjoined::lost);
}

std::vector<Doubt> doubts_of(const Measures& trace) {
  const TraceFacts& facts = trace.facts();
  std::vector<Doubt> doubts;
  auto doubt = [&](bool is, Needs about, std::string why) {
    if (is) doubts.push_back({about, std::move(why)});
  };
  doubt(!facts.calls, Needs::all(), "holds no calls");
  doubt(!facts.cut_off.empty(), Needs::all(), "is cut off");
  doubt(!facts.missing.empty(), Needs::all(), "lacks files of a rotated trace");
  doubt(facts.malformed, Needs::all(), "has lines that could not be read");
  for (const auto& [reason, loss] : facts.losses)
    doubt(true, spoilt_by(reason, SPOILT_BY_LOSS), "has losses: " + printable(reason));
  for (const std::string& kind : facts.left_out)
    doubt(true, spoilt_by(kind, SPOILT_BY_LEAVING_OUT), "does not have all " + printable(kind));
  doubt(facts.header.returns == false, Need::times | Need::results, "was taken without returns");
  doubt(facts.put_away, Need::processes | Need::memory, "has too many processes at once");
  doubt(trace.memory_left_out().any(), Need::memory, "has too much memory to follow");
  doubt(trace.kernels().graph_launches().unknown(), Need::graphs,
        "does not say what every launched graph ran");
  doubt(facts.header.samples_gpus(), Need::gpu_times, "has GPU times in windows only");
  doubt(lacks_gpu_operations(facts), Need::gpu_times, "lacks some of what GPUs did");
  const auto* process = trace.execution().process();
  doubt(process && (process->lost_track || process->untimed_waits), Need::pending,
        "does not say when every wait ended");
  const auto* thread = trace.execution().thread();
  doubt(thread && thread->segments_left_out, Need::waits, "has more waits than are followed");
  return doubts;
}

void add_parts(TraceFigures& figures, const Measure& measure, const Measures& trace) {
  for (PartFigure& part : measure.parts(trace))
    figures.figures.push_back({{&measure, std::move(part.name)}, part.value, {}});
}

}  // namespace

const TraceFigures::Figure* TraceFigures::find(const MeasurePart& asked) const {
  auto at = std::find_if(figures.begin(), figures.end(),
                         [&](const Figure& figure) { return figure.asked == asked; });
  return at == figures.end() ? nullptr : &*at;
}

const TraceFigures::Doubt* TraceFigures::doubt(Needs about) const {
  auto at = std::find_if(doubts.begin(), doubts.end(),
                         [&](const Doubt& one) { return one.about.any_of(about); });
  return at == doubts.end() ? nullptr : &*at;
}

TraceFigures figures_of(const Measures& trace, const std::vector<MeasurePart>& asked) {
  TraceFigures figures;
  figures.facts = trace.facts();
  figures.settings = settings_in(trace.facts().header);
  figures.doubts = doubts_of(trace);
  figures.issued_alone = trace.execution().iterations().found == Iterations::Found::within_a_wait;
  for (const Measure& measure : all_measures()) {
    if (measure.whole)
      if (auto value = measure.whole(trace))
        figures.figures.push_back(
            {{&measure, {}}, *value, measure.median ? measure.median(trace) : Median()});
    if (!measure.part_title.empty()) {
      add_parts(figures, measure, trace);
      continue;
    }
    for (const MeasurePart& one : asked) {
      if (one.measure != &measure || one.part.empty() || figures.find(one)) continue;
      for (const PartFigure& part : measure.parts(trace))
        if (part.name == one.part) figures.figures.push_back({one, part.value, {}});
    }
  }
  return figures;
}

}  // namespace cudabpf::analyze
