// A figure of all traces of both sides.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analyze/diff/trace_figures.hpp"

namespace cudabpf::analyze {

// A figure in the traces of one side.
struct Spread {
  std::vector<std::optional<double>> of_each;  // in the order of the traces; none: it lacks it
  std::size_t known = 0;                       // traces that have it
  // The side's figure: the median of those, or the most.
  double figure = 0;
  double least = 0, most = 0;

  bool in_all() const { return known == of_each.size(); }
  // The largest distance of a trace from the figure.
  double off() const { return std::max(most - figure, figure - least); }
  bool operator==(const Spread&) const = default;
};

struct Compared {
  MeasurePart asked;
  Spread a, b;
  Noise noise = Noise::unknown;
  Judgement judgement;  // of medians within two traces

  std::string title() const;
  Unit unit() const { return asked.measure->unit; }
  double change() const { return b.figure - a.figure; }
  // Whether all traces of both sides agree in this.
  bool same() const;
};

Compared compare(const MeasurePart& asked, const std::vector<TraceFigures>& a,
                 const std::vector<TraceFigures>& b);

// As pages and JSON give them.
std::string figure_text(Unit unit, double value);
Json figure_json(Unit unit, double value);
std::string times_text(double times);  // "3.7 ×"
// "-72.6 %"; more than twice as much: in times
std::string signed_percent(double percent);
// "+2.3 %"; "=", "~": hardly, or not certainly; "new", "gone": it is 0 on one side
std::string change_text(double a, double b);
std::string change_text(const Judgement& judgement);
std::string change_text(const Compared& compared);
// "4.50 s ±2.0 %"; "4.50 s (2 of 3)": not all traces have it; "-": none has
std::string spread_text(const Spread& spread, Unit unit);
Json compared_json(const Compared& compared);

}  // namespace cudabpf::analyze
