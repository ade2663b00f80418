#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/diff/difference.hpp"

namespace cudabpf::analyze {

namespace {

using Beside = DiffVerdict::Is;

const Compared* row_of(const std::vector<Compared>& rows, std::string_view measure) {
  auto at = std::find_if(rows.begin(), rows.end(),
                         [&](const Compared& row) { return row.asked.name() == measure; });
  return at == rows.end() || !at->a.known || !at->b.known ? nullptr : &*at;
}

Beside judged(const Compared& row) {
  using Judged = Judgement::Verdict;
  if (row.a.figure == row.b.figure) return Beside::same;
  Beside changed = row.b.figure > row.a.figure ? Beside::slower : Beside::faster;
  Judged verdict = row.judgement.verdict;
  if (verdict == Judged::slower || verdict == Judged::faster || row.noise == Noise::beyond)
    return changed;
  // Two single figures do not show what is chance.
  bool single = verdict == Judged::not_timed && row.noise == Noise::unknown;
  return single && std::abs(row.change()) > Judgement::MIN_CHANGE * row.a.figure ? changed
                                                                                 : Beside::unclear;
}

// "Iterations take 2.7 × as long in B"
std::string title_of(const Compared& row, Beside is, bool of_iterations) {
  std::string what = of_iterations ? "Iterations take" : "B takes",
              in = of_iterations ? " in B" : "";
  double times = row.a.figure > 0 ? row.b.figure / row.a.figure : 0;
  std::string percent = fmt::format("{:.1f} %", std::abs(100 * (times - 1)));
  switch (is) {
    case Beside::same:
      return what + " as long" + in + " as in A";
    case Beside::unclear:
      return of_iterations ? "No certain difference between iterations" : "No certain difference";
    case Beside::apart:
      return "Iterations cannot be compared";
    case Beside::faster:
      return fmt::format("{} {} less time{}", what, percent, in);
    case Beside::slower:
      return times > 2 || times == 0 ? fmt::format("{} {} as long{}", what, times_text(times), in)
                                     : fmt::format("{} {} longer{}", what, percent, in);
  }
  return {};
}

// "18.7 ms in B, 5.12 ms in A"
std::string both(const Compared& row) {
  return fmt::format("{} in B, {} in A", figure_text(row.unit(), row.b.figure),
                     figure_text(row.unit(), row.a.figure));
}

// "18.7 ms in B, 5.12 ms in A (3.7 ×)"
std::string with_change(const Compared& row) {
  if (row.a.figure == 0 || row.a.figure == row.b.figure) return both(row);
  return fmt::format("{} ({})", both(row), signed_percent(100 * (row.b.figure / row.a.figure - 1)));
}

// What changed along with it: how much was issued, or how long it took.
std::string beside(const Difference& difference) {
  std::string text;
  auto add = [&](const char* what, const std::vector<Compared>& rows, std::string_view measure) {
    const Compared* row = row_of(rows, measure);
    if (row && row->a.figure != row->b.figure)
      text += fmt::format("; {} {}", what, with_change(*row));
  };
  add("launches of each", difference.iterations, "launches-per-iteration");
  add("GPU time of each", difference.iterations, "iteration-gpu-time");
  add("the whole trace", difference.totals, "duration");
  return text;
}

}  // namespace

DiffVerdict verdict_of(const Difference& difference) {
  DiffVerdict verdict;
  if (const Compared* row = row_of(difference.iterations, "iteration-time")) {
    verdict.by = row;
    // If only one side waits after each, the two times do not measure the same thing.
    verdict.is = difference.on_iterations.size() == 1 ? Beside::apart : judged(*row);
    verdict.title = title_of(*row, verdict.is, true);
    verdict.text = fmt::format("{}, p50{}.", both(*row), beside(difference));
    for (const std::string& note : difference.on_iterations) verdict.text += " " + note + ".";
  } else if (const Compared* whole = row_of(difference.totals, "duration");
             whole && judged(*whole) != Beside::same) {
    verdict.by = whole;
    verdict.is = judged(*whole);
    verdict.title = title_of(*whole, verdict.is, false);
    verdict.text = fmt::format(
        "the whole trace, {}. Iterations were not found in both, so how long the same work takes "
        "cannot be compared.",
        both(*whole));
  }
  return verdict;
}

}  // namespace cudabpf::analyze
