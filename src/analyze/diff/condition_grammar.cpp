// Conditions as users type them. Pure: the text may be anything.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "analyze/diff/conditions.hpp"
#include "util/exit_codes.hpp"
#include "util/text/nearest.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::string_view BLANKS = " \t";

struct Scale {
  std::string_view name;
  Unit of;
  double factor;
};
constexpr double KIB = 1024;
constexpr Scale SCALES[] = {
    {"", Unit::count, 1},           {"ns", Unit::time, 1},
    {"us", Unit::time, 1e3},        {"µs", Unit::time, 1e3},
    {"ms", Unit::time, 1e6},        {"s", Unit::time, 1e9},
    {"B", Unit::bytes, 1},          {"KiB", Unit::bytes, KIB},
    {"MiB", Unit::bytes, KIB* KIB}, {"GiB", Unit::bytes, KIB* KIB* KIB},
    {"points", Unit::share, 1e4},
};

std::string_view without_blanks(std::string_view text) {
  std::size_t begin = text.find_first_not_of(BLANKS);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(BLANKS) - begin + 1);
}

std::string units_of(Unit unit) {
  std::vector<std::string_view> names = {"%"};
  for (const Scale& scale : SCALES)
    if (scale.of == unit) names.push_back(scale.name.empty() ? "nothing" : scale.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Error wrong(std::string_view text, const std::string& what, const std::string& hint) {
  return {fmt::format("--fail-if '{}': {}", text, what), hint, exit_code::USAGE};
}

Error unknown_measure(std::string_view text, std::string_view name) {
  std::vector<std::string> names = measure_names();
  std::string meant = nearest(name, names);
  return wrong(text,
               name.empty() ? "it does not begin with a measure"
                            : fmt::format("no measure is called {}", name),
               fmt::format("{}they are: {}", meant.empty() ? "" : "did you mean " + meant + "? ",
                           fmt::join(names, ", ")));
}

Result<MeasurePart> parse_measure(std::string_view text, std::string_view name) {
  std::size_t colon = name.find(':');
  MeasurePart asked{find_measure(without_blanks(name.substr(0, colon))), {}};
  if (!asked.measure) return unknown_measure(text, without_blanks(name.substr(0, colon)));
  const Measure& measure = *asked.measure;
  if (colon != std::string_view::npos) asked.part = without_blanks(name.substr(colon + 1));
  if (colon != std::string_view::npos && (measure.part_is.empty() || asked.part.empty()))
    return wrong(
        text,
        measure.part_is.empty() ? fmt::format("{} has no parts", measure.name)
                                : fmt::format("a {} must follow the colon", measure.part_is),
        measure.part_is.empty() ? fmt::format("give it as {}", measure.name)
                                : fmt::format("give it as {}:{}", measure.name, measure.part_is));
  if (asked.part.empty() && !measure.whole)
    return wrong(text, fmt::format("{} is of one {}", measure.name, measure.part_is),
                 fmt::format("give it as {}:{}", measure.name, measure.part_is));
  return asked;
}

}  // namespace

Result<Condition> parse_condition(std::string_view text) {
  std::size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos) {
    std::string_view name = without_blanks(text.substr(0, text.find_first_of(" \t:=")));
    if (!find_measure(name)) return unknown_measure(text, name);
    return wrong(text, "it has neither > nor <", "give it as 'launches > +5 %'");
  }
  Condition condition;
  condition.asked = TRY(parse_measure(text, without_blanks(text.substr(0, sign))));
  condition.more = text[sign] == '>';

  std::string_view rest = without_blanks(text.substr(sign + 1));
  char direction = rest.starts_with('-') ? '-' : '+';
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  // As from_chars reads it, but neither "inf" nor "1e5" nor another sign.
  std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789."));
  double number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number,
                                      std::chars_format::fixed);
  if (error != std::errc() || end != digits.data() + digits.size())
    return wrong(text, fmt::format("a number must follow {}", text[sign]),
                 "give it as 'launches > +5 %'");
  std::string_view unit = without_blanks(rest.substr(digits.size()));

  const Measure& measure = *condition.asked.measure;
  condition.relative = unit == "%";
  double factor = 1;
  if (!condition.relative) {
    const auto* scale = std::find_if(std::begin(SCALES), std::end(SCALES), [&](const Scale& one) {
      return one.name == unit && one.of == measure.unit;
    });
    if (scale == std::end(SCALES))
      return wrong(text,
                   unit.empty() ? fmt::format("{} needs a unit", measure.name)
                                : fmt::format("{} is not measured in {}", measure.name, unit),
                   "write one of these after the number: " + units_of(measure.unit));
    factor = scale->factor;
  }
  condition.limit = (direction == '-' ? -number : number) * factor;
  condition.text = fmt::format("{} {} {}{}{}{}", condition.asked.name(), text[sign], direction,
                               digits, unit.empty() ? "" : " ", unit);
  return condition;
}

std::vector<MeasurePart> asked_of(const std::vector<Condition>& conditions) {
  std::vector<MeasurePart> asked;
  asked.reserve(conditions.size());
  for (const Condition& condition : conditions) asked.push_back(condition.asked);
  return asked;
}

}  // namespace cudabpf::analyze
