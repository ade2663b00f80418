// Whether a change exceeds ordinary variation: from call to call within a trace, and from trace to
// trace of the same program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "util/durations.hpp"

namespace cudabpf::analyze {

// The median of values within one trace, and how much medians of that many vary by chance.
struct Median {
  std::uint64_t count = 0;
  double value = 0, standard_error = 0;
};
Median median_of(const Durations& times);
Median median_of(std::span<const std::uint64_t> sorted);

// Two runs of one program are never alike. Durations are said to have changed if their medians
// differ by more than MIN_CHANGE, and by more than STANDARD_ERRORS times what chance makes of
// medians of that many calls with that spread; never with fewer calls than MIN_CALLS.
struct Judgement {
  static constexpr std::uint64_t MIN_CALLS = 10;
  static constexpr double MIN_CHANGE = 0.05;
  static constexpr double STANDARD_ERRORS = 3;

  // `same`: the medians are equal; `unclear`: they differ, by too little or perhaps by chance.
  enum class Verdict : std::uint8_t { not_timed, few, same, unclear, slower, faster };
  Verdict verdict = Verdict::not_timed;
  double change = 0;  // of the median, in percent of A's
};
Judgement judge(const Median& a, const Median& b);
Judgement judge(const Durations& a, const Durations& b);
std::string_view to_string(Judgement::Verdict verdict);

// Where there are several traces a side, they show how much runs differ anyway.
enum class Noise : std::uint8_t {
  unknown,  // there is one trace a side, and nothing within them shows it
  within,
  beyond,
};
std::string_view to_string(Noise noise);

// The values of one figure in the traces of each side. The figure is beyond the noise if chance
// alone would rank one side's values that high at most once in twenty times (the exact test of Mann
// and Whitney; with three a side, none may lie among the others). Where traces are too few for
// that, the gap between the sides must exceed the width of either, which is about as rare.
Noise noise_of(const std::vector<double>& a, const std::vector<double>& b);
// The same of two traces, for a median of values within each.
Noise noise_of(const Median& a, const Median& b);

// The middle one of the values, or the mean of the middle two. There is at least one.
double middle_of(std::vector<double> values);

}  // namespace cudabpf::analyze
