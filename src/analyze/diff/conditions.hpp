// Conditions that a comparison checks, so that a calling program learns of a change that matters:
// "launches > +5 %", "memory-peak:device > +100 MiB".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/diff/difference.hpp"
#include "util/result.hpp"

namespace cudabpf::analyze {

// It holds if the measure changes from A to B by more, or by less, than the limit.
struct Condition {
  std::string text;  // as it was understood
  MeasurePart asked;
  bool more = true;       // ">"
  bool relative = false;  // the limit is in percent of A; else in the unit of the measure
  double limit = 0;
};

// MEASURE[:PART] (>|<) [+|-]NUMBER [%|UNIT]. The error says what is wrong, and lists the measures.
Result<Condition> parse_condition(std::string_view text);
std::vector<MeasurePart> asked_of(const std::vector<Condition>& conditions);

struct Outcome {
  enum class Is : std::uint8_t { holds, does_not_hold, unknown };
  const Condition* condition = nullptr;
  Is is = Is::unknown;
  Compared compared;
  std::string why;  // it is unknown
};
std::string_view to_string(Outcome::Is is);

// A change within the noise counts as none.
Outcome judge(const Condition& condition, const DiffSide& a, const DiffSide& b);
std::vector<Outcome> judge(const std::vector<Condition>& conditions, const DiffSide& a,
                           const DiffSide& b);

// The process's exit status.
int status_of(const std::vector<Outcome>& outcomes);

Json outcomes_json(const std::vector<Outcome>& outcomes);
void add_outcomes(Page& page, const std::vector<Outcome>& outcomes);

}  // namespace cudabpf::analyze
