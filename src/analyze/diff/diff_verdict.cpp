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

std::string title_of(Beside is, bool of_iterations) {
  switch (is) {
    case Beside::same:
      return "No difference";
    case Beside::unclear:
      return "No certain difference";
    case Beside::faster:
      return of_iterations ? "B is faster" : "B takes less time";
    case Beside::slower:
      return of_iterations ? "B is slower" : "B takes more time";
  }
  return {};
}

// "18.7 ms in B, 5.12 ms in A (3.7 ×)"
std::string both(const Compared& row) {
  std::string text = fmt::format("{} in B, {} in A", figure_text(row.unit(), row.b.figure),
                                 figure_text(row.unit(), row.a.figure));
  if (row.a.figure == 0 || row.a.figure == row.b.figure) return text;
  return fmt::format("{} ({})", text, signed_percent(100 * (row.b.figure / row.a.figure - 1)));
}

// What went along with it: that more or less was asked for, or that it took longer.
std::string beside(const Difference& difference) {
  std::string text;
  auto add = [&](const char* what, const std::vector<Compared>& rows, std::string_view measure) {
    const Compared* row = row_of(rows, measure);
    if (row && row->a.figure != row->b.figure) text += fmt::format("; {} {}", what, both(*row));
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
    verdict.is = judged(*row);
    verdict.title = title_of(verdict.is, true);
    verdict.text = fmt::format("an iteration takes {}, p50{}.", both(*row), beside(difference));
    for (const std::string& note : difference.on_iterations) verdict.text += " " + note + ".";
  } else if (const Compared* whole = row_of(difference.totals, "duration");
             whole && judged(*whole) != Beside::same) {
    verdict.by = whole;
    verdict.is = judged(*whole);
    verdict.title = title_of(verdict.is, false);
    verdict.text = fmt::format(
        "the whole trace takes {}. Iterations were not found in both, so how long the same work "
        "takes cannot be compared.",
        both(*whole));
  }
  return verdict;
}

}  // namespace cudabpf::analyze
