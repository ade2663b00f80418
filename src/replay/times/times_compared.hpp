// What a replay takes beside what the program took: as a whole, and predicted from its kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/launches.hpp"
#include "replay/replayer.hpp"
#include "replay/tape.hpp"
#include "replay/times/actual_times.hpp"

namespace cudabpf::replay {

// A launch counts as between warm and cold if it is beyond by at most the larger of these: GPUs'
// clocks, and their steps of half a microsecond, are no more exact.
inline constexpr double TOLERANCE_PERCENT = 5, TOLERANCE_US = 0.5;

// Where the program's time lies.
enum class Place : std::uint8_t {
  within,
  faster,
  slower,
  does_less_again,
  not_timed,
  not_measured
};
inline constexpr std::array<std::string_view, 6> PLACES = {"within",           "faster than warm",
                                                           "slower than cold", "not comparable",
                                                           "not timed",        "not in the trace"};

struct ComparedLaunch {
  std::uint32_t launch = 0;  // of distinct_launches()
  std::uint64_t count = 0;   // on the tape
  // In the trace; of these, between warm and cold; and beside other operations.
  std::uint64_t measured = 0, within = 0, beside_others = 0;
  double total_us = 0, mean_us = 0, median_us = 0;  // in the trace
  // By itself: see LaunchTiming. None: it was not timed.
  std::optional<double> warm_us = {}, cold_us = {}, in_turn_us = {};
  bool has_delay = false;  // warm is a mean of several, with the GPU's delay between them
  Place place = Place::not_measured;

  std::string why() const;
};

struct ComparedTier {
  std::string_view tier, method;
  std::uint64_t unique_kernels = 0, operations = 0;
  double total_us = 0, actual_us = 0;  // predicted; in the trace
  // Nothing for copies and fills, which have no times but the trace's.
  std::optional<double> error_percent = {};
};

struct TimesCompared {
  // In the trace: when anything ran on the GPU; all operations added up; from the beginning of the
  // first to the end of the last; and the iteration of the program.
  double busy_us = 0, sum_us = 0, span_us = 0, wall_us = 0;
  std::uint64_t operations = 0;
  std::optional<double> full_us;  // none: the tape was not timed
  std::uint32_t full_runs = 0;
  double predicted_us = 0;  // each launch in its turn
  double predicted_warm_us = 0, predicted_cold_us = 0;
  // What of these is the trace's own time, and of how many operations.
  double copies_us = 0, not_timed_us = 0;
  std::uint64_t copies = 0, not_timed = 0;
  std::uint64_t without_time = 0;  // launches that the trace has no time of
  std::uint64_t judged = 0, within = 0, faster = 0, slower = 0;  // launches
  // How many of the slower launches took as long in turn, and how many of the others ran beside
  // other operations.
  std::uint64_t slower_in_turn = 0, slower_beside = 0;
  std::vector<ComparedTier> tiers;
  std::vector<ComparedLaunch> launches;  // those that took longest in the trace first

  double share_within() const;  // in percent
  // Where the differences come from.
  std::vector<std::string> reasons() const;
};

double error_percent(double predicted, double actual);

TimesCompared compare_times(const ActualTimes& actual, const std::optional<Timing>& full,
                            const std::vector<IsolatedLaunch>& isolated, const Tape& tape,
                            const Manifest& manifest);

}  // namespace cudabpf::replay
