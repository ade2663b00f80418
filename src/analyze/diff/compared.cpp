#include "analyze/diff/compared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace cudabpf::analyze {

namespace {

using Verdict = Judgement::Verdict;

constexpr double MIN_VISIBLE = 0.05;  // less would be shown as 0.0 %
constexpr double PER_POINT = 10'000;  // millionths

Spread spread_of(const MeasurePart& asked, const std::vector<TraceFigures>& traces,
                 bool zero_without) {
  Spread spread;
  std::vector<double> values;
  for (const TraceFigures& trace : traces) {
    const TraceFigures::Figure* figure = trace.find(asked);
    bool may_be_zero = !asked.measure->in_all || trace.find({asked.measure, {}});
    std::optional<double> value;
    if (figure) value = static_cast<double>(figure->value);
    if (!figure && zero_without && may_be_zero) value = 0;
    spread.of_each.push_back(value);
    if (value) values.push_back(*value);
  }
  spread.known = values.size();
  if (values.empty()) return spread;
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  spread.least = *least;
  spread.most = *most;
  bool by_most = asked.measure->counts == Measure::Counts::most;
  spread.figure = by_most ? spread.most : middle_of(std::move(values));
  return spread;
}

std::uint64_t rounded(double value) {
  constexpr double TOO_MUCH = 18446744073709551616.0;  // 2^64: a trace may claim anything
  return value < TOO_MUCH ? static_cast<std::uint64_t>(std::round(value))
                          : std::numeric_limits<std::uint64_t>::max();
}

std::vector<double> known_of(const Spread& spread) {
  std::vector<double> values;
  for (const auto& value : spread.of_each)
    if (value) values.push_back(*value);
  return values;
}

Json spread_json(const Spread& spread, Unit unit) {
  Json of_each = Json::array();
  for (const auto& value : spread.of_each)
    of_each.push_back(value ? figure_json(unit, *value) : Json());
  Json json = {{"of_each", std::move(of_each)}};
  if (spread.known) {
    json["min"] = figure_json(unit, spread.least);
    json["max"] = figure_json(unit, spread.most);
  }
  return json;
}

}  // namespace

std::string Compared::title() const {
  const Measure& measure = *asked.measure;
  if (asked.part.empty()) return std::string(measure.title);
  if (measure.part_title.empty()) return fmt::format("{}, {}", measure.title, asked.part);
  return fmt::format(fmt::runtime(measure.part_title), asked.part);
}

bool Compared::same() const {
  return a.in_all() == b.in_all() && a.least == b.least && a.most == b.most && a.least == a.most;
}

Compared compare(const MeasurePart& asked, const std::vector<TraceFigures>& a,
                 const std::vector<TraceFigures>& b) {
  auto has = [&](const TraceFigures& trace) { return trace.find(asked) != nullptr; };
  bool anywhere = std::any_of(a.begin(), a.end(), has) || std::any_of(b.begin(), b.end(), has);
  bool zero_without = anywhere && !asked.part.empty() && asked.measure->without_is_zero;
  Compared compared{asked,
                    spread_of(asked, a, zero_without),
                    spread_of(asked, b, zero_without),
                    Noise::unknown,
                    {}};
  if (asked.measure->counts == Measure::Counts::most) return compared;
  if (a.size() + b.size() > 2) {
    compared.noise = noise_of(known_of(compared.a), known_of(compared.b));
  } else if (asked.measure->median && has(a.front()) && has(b.front())) {
    const Median &of_a = a.front().find(asked)->median, &of_b = b.front().find(asked)->median;
    compared.judgement = judge(of_a, of_b);
    compared.noise = noise_of(of_a, of_b);
  }
  return compared;
}

std::string times_text(double times) {
  constexpr double ABSURD = 1e6;  // as in a trace whose times are
  if (times > ABSURD) return "over " + with_commas(static_cast<std::uint64_t>(ABSURD)) + " ×";
  return times < 10 ? fmt::format("{:.1f} ×", times) : with_commas(rounded(times)) + " ×";
}

std::string signed_percent(double percent) {
  constexpr double DOUBLED = 100, HARDLY_ANY_LEFT = -99.9;
  if (percent > DOUBLED) return times_text(1 + percent / 100);
  if (percent < HARDLY_ANY_LEFT) return "under 1/1,000";
  return fmt::format("{:+.1f} %", percent);
}

std::string change_text(double a, double b) {
  if (a == b) return "=";
  if (a == 0) return "new";
  if (b == 0) return "gone";
  double percent = 100 * (b / a - 1);
  return std::abs(percent) < MIN_VISIBLE ? "~" : signed_percent(percent);
}

std::string change_text(const Judgement& judgement) {
  switch (judgement.verdict) {
    case Verdict::not_timed:
      return "";
    case Verdict::few:
      return "too few";
    case Verdict::same:
      return "=";
    case Verdict::unclear:
      return "~";
    case Verdict::slower:
    case Verdict::faster:
      return signed_percent(judgement.change);
  }
  return {};
}

std::string change_text(const Compared& of) {
  if (!of.a.known || !of.b.known) return of.a.known ? "gone" : "new";
  if (of.judgement.verdict != Verdict::not_timed) return change_text(of.judgement);
  if (of.unit() != Unit::share) return change_text(of.a.figure, of.b.figure);
  double points = of.change() / PER_POINT;
  if (points == 0) return "=";
  return std::abs(points) < MIN_VISIBLE ? "~" : fmt::format("{:+.1f} points", points);
}

std::string figure_text(Unit unit, double value) {
  std::uint64_t whole = rounded(value);
  switch (unit) {
    case Unit::count:
      // A median may lie between two counts.
      return value == std::floor(value) ? human_count(whole) : with_commas(whole - 1) + ".5";
    case Unit::time:
      return human_time(whole);
    case Unit::bytes:
      return human_bytes(whole);
    case Unit::share:
      return fmt::format("{:.1f} %", value / PER_POINT);
  }
  return {};
}

std::string spread_text(const Spread& spread, Unit unit) {
  if (!spread.known) return "-";
  std::string text = figure_text(unit, spread.figure);
  if (spread.of_each.size() == 1) return text;
  if (!spread.in_all())
    return text + fmt::format(" ({} of {})", spread.known, spread.of_each.size());
  double off = spread.off();
  if (unit == Unit::share) return text + fmt::format(" ±{:.1f}", off / PER_POINT);
  if (off > spread.figure) return text + " ±" + figure_text(unit, off);
  return text +
         fmt::format(" ±{:.{}f} %", 100 * off / spread.figure, off < spread.figure / 10 ? 1 : 0);
}

Json figure_json(Unit unit, double value) {
  switch (unit) {
    case Unit::time:
      return value / 1000;
    case Unit::share:
      return value / PER_POINT;
    case Unit::count:
    case Unit::bytes:
      break;
  }
  constexpr double EXACT = 9007199254740992.0;  // 2^53
  if (value != std::floor(value) || std::abs(value) > EXACT) return value;
  return static_cast<std::int64_t>(value);
}

Json compared_json(const Compared& of) {
  Json json = {{"name", of.title()},
               {"measure", of.asked.name()},
               {"unit", to_string(of.unit())},
               {"a", of.a.known ? figure_json(of.unit(), of.a.figure) : Json()},
               {"b", of.b.known ? figure_json(of.unit(), of.b.figure) : Json()}};
  if (of.judgement.verdict != Verdict::not_timed) json["verdict"] = to_string(of.judgement.verdict);
  if (of.a.of_each.size() + of.b.of_each.size() > 2) {
    json["a_spread"] = spread_json(of.a, of.unit());
    json["b_spread"] = spread_json(of.b, of.unit());
    json["counts"] = of.asked.measure->counts == Measure::Counts::most ? "most" : "median";
  }
  json["noise"] = to_string(of.noise);
  return json;
}

}  // namespace cudabpf::analyze
