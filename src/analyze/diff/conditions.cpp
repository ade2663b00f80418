#include "analyze/diff/conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "util/exit_codes.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

using Is = Outcome::Is;

std::string absent(const MeasurePart& asked) {
  const Measure& measure = *asked.measure;
  return asked.part.empty() ? fmt::format("has no {}", measure.absent)
                            : fmt::format("has no {} {}", measure.part_is, asked.part);
}

// Why the condition cannot be judged; empty: it can.
std::string obstacle(const Compared& compared, const DiffSide& a, const DiffSide& b) {
  const MeasurePart& asked = compared.asked;
  Needs needs = asked.measure->needs;
  bool alone = false, after_waits = false;
  for (auto [letter, side, spread] :
       {std::tuple('A', &a, &compared.a), std::tuple('B', &b, &compared.b)})
    for (std::size_t i = 0; i < side->traces.size(); i++) {
      const TraceFigures& trace = side->traces[i];
      std::string name = name_of(letter, *side, i);
      if (const auto* doubt = trace.doubt(needs)) return name + " " + doubt->why;
      if (!spread->of_each[i]) return name + " " + absent(asked);
      (trace.issued_alone ? alone : after_waits) = true;
    }
  bool is_timed = asked.measure->place == Measure::Place::iterations && needs.any_of(Need::times);
  if (alone && after_waits && is_timed)
    return "not all traces wait after each iteration, so their times are not of one kind";
  for (const Setting& setting : settings_unlike(a, b))
    if (setting.incomparable.any_of(needs))
      return fmt::format("they were recorded differently ({}): {}", setting.what, setting.so);
  return {};
}

// The change that counts: none within the noise.
double change_of(const Compared& compared) {
  return compared.noise == Noise::within ? 0 : compared.change();
}

bool holds(const Condition& condition, const Compared& compared) {
  double change = change_of(compared), limit = condition.limit;
  if (condition.relative && change != 0) {
    change *= 100;
    limit *= compared.a.figure;  // any rise from 0 is more than every percentage
  }
  return condition.more ? change > limit : change < limit;
}

std::string signed_figure(Unit unit, double change) {
  if (change == 0) return "=";
  std::string figure = unit == Unit::share ? fmt::format("{:.1f} points", std::abs(change) / 1e4)
                                           : figure_text(unit, std::abs(change));
  return (change < 0 ? "-" : "+") + figure;
}

// In the limit's unit, whatever the noise.
std::string change_cell(const Outcome& outcome) {
  const Compared& of = outcome.compared;
  if (!of.a.known || !of.b.known) return "";
  if (!outcome.condition->relative) return signed_figure(of.unit(), of.change());
  return change_text(of.a.figure, of.b.figure);
}

}  // namespace

std::string_view to_string(Is is) {
  constexpr std::string_view NAMES[] = {"holds", "does not hold", "unknown"};
  return NAMES[static_cast<std::size_t>(is)];
}

Outcome judge(const Condition& condition, const DiffSide& a, const DiffSide& b) {
  Outcome outcome{&condition, Is::unknown, compare(condition.asked, a.traces, b.traces), {}};
  outcome.why = obstacle(outcome.compared, a, b);
  if (outcome.why.empty())
    outcome.is = holds(condition, outcome.compared) ? Is::holds : Is::does_not_hold;
  return outcome;
}

std::vector<Outcome> judge(const std::vector<Condition>& conditions, const DiffSide& a,
                           const DiffSide& b) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(conditions.size());
  for (const Condition& condition : conditions) outcomes.push_back(judge(condition, a, b));
  return outcomes;
}

int status_of(const std::vector<Outcome>& outcomes) {
  auto any = [&](Is is) {
    return std::any_of(outcomes.begin(), outcomes.end(),
                       [&](const Outcome& one) { return one.is == is; });
  };
  if (any(Is::holds)) return exit_code::CONDITION_HOLDS;
  return any(Is::unknown) ? exit_code::CONDITION_UNKNOWN : exit_code::OK;
}

Json outcomes_json(const std::vector<Outcome>& outcomes) {
  Json json = Json::array();
  for (const Outcome& outcome : outcomes) {
    Json one = {{"condition", outcome.condition->text}, {"outcome", to_string(outcome.is)}};
    if (!outcome.why.empty()) one["why"] = outcome.why;
    one.update(compared_json(outcome.compared));
    const Compared& of = outcome.compared;
    if (of.a.known && of.b.known) {
      one["change"] = figure_json(of.unit(), of.change());
      if (of.a.figure > 0) one["change_percent"] = 100 * of.change() / of.a.figure;
    }
    json.push_back(std::move(one));
  }
  return json;
}

void add_outcomes(Page& page, const std::vector<Outcome>& outcomes) {
  if (outcomes.empty()) return;
  constexpr std::string_view HOLDS[] = {"yes", "no", "unknown"};
  Table table("conditions", {{"A"}, {"B"}, {"change"}, {"noise", 0, true}, {"holds", 0, true}}, 20);
  std::string those_that_hold;
  for (const Outcome& outcome : outcomes) {
    const Compared& of = outcome.compared;
    table.row(outcome.condition->text,
              {spread_text(of.a, of.unit()), spread_text(of.b, of.unit()), change_cell(outcome),
               of.noise == Noise::unknown ? "" : std::string(to_string(of.noise)),
               std::string(HOLDS[static_cast<std::size_t>(outcome.is)])});
    if (outcome.is == Is::holds)
      those_that_hold += (those_that_hold.empty() ? "" : "; ") + outcome.condition->text;
  }
  table.add_to(page);
  for (const Outcome& outcome : outcomes)
    if (!outcome.why.empty())
      page.paragraph(fmt::format("{}: {}.", outcome.condition->text, outcome.why), 4);
  page.paragraph(fmt::format("Exit status {}: {}.", status_of(outcomes),
                             !those_that_hold.empty() ? those_that_hold
                             : status_of(outcomes)    ? "not all could be judged"
                                                      : "none holds"),
                 2);
}

}  // namespace cudabpf::analyze
