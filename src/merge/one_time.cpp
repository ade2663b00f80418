#include "merge/one_time.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "merge/drift.hpp"
#include "util/saturating.hpp"

namespace cudabpf::merge {

namespace {

// Clocks beyond these are nobody's, and sums of clocks below them do not overflow.
constexpr std::uint64_t LATEST_DAY = std::uint64_t{1} << 62, LONGEST_UP = std::uint64_t{1} << 61;
constexpr std::uint64_t LARGEST_ERROR = 86'400'000'000'000;
constexpr std::uint32_t UNSYNCHRONISED = 0x40;  // STA_UNSYNC

std::uint64_t distance(std::int64_t a, std::int64_t b) {
  return a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
               : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
}

// What one reading says of a boot: the time of day is `shift` later than the monotonic clock, at
// this moment within this error.
struct Estimate {
  std::int64_t at = 0, shift = 0;
  std::uint64_t error = 0;

  std::uint64_t error_at(std::int64_t moment, std::int64_t used_shift) const {
    return saturating_sum(saturating_sum(error, distance(shift, used_shift)),
                          drift_over(distance(moment, at)));
  }
};

bool is_time_of_day(const Reading& reading) {
  return reading.realtime && reading.realtime < LATEST_DAY && reading.monotonic < LONGEST_UP;
}

bool is_synchronised(const Reading& reading) {
  return reading.error && !(reading.error->status & UNSYNCHRONISED);
}

// The kernel's offset is what it has still to add to the clock. Whether the maximum error includes
// it depends on who keeps the clock, so here it is added.
std::optional<Estimate> estimate_of(const Reading& reading) {
  if (!is_time_of_day(reading) || !is_synchronised(reading)) return std::nullopt;
  const ClockError& error = *reading.error;
  std::uint64_t offset = distance(error.offset_ns, 0),
                most = saturating_product(error.max_error_us, std::uint64_t{1000});
  if (offset > LARGEST_ERROR || most > LARGEST_ERROR) return std::nullopt;
  auto at = static_cast<std::int64_t>(reading.monotonic);
  return Estimate{at, static_cast<std::int64_t>(reading.realtime) + error.offset_ns - at,
                  most + offset};
}

struct Boot {
  std::vector<std::size_t> traces;
  std::int64_t shift = 0;  // from its monotonic clock to the time of day
  bool has_day = false;
  std::optional<std::uint64_t> error;
  std::string why_unknown;
  std::int64_t begin = 0, end = 0;  // of its traces' events, on its monotonic clock
  Alignment alignment = Alignment::time_of_day;
  std::optional<std::uint64_t> bound;  // of its distance to the first
};

// The largest error that a time in this stretch may have. At each moment the best of the readings
// counts; between two neighbours the error grows from both by the drift.
std::uint64_t error_within(std::int64_t begin, std::int64_t end, std::int64_t shift,
                           const std::vector<Estimate>& estimates) {
  std::vector<std::int64_t> moments = {begin, end};
  for (const Estimate& one : estimates)
    if (one.at > begin && one.at < end) moments.push_back(one.at);
  std::sort(moments.begin(), moments.end());
  auto least_at = [&](std::int64_t moment) {
    std::uint64_t least = estimates.front().error_at(moment, shift);
    for (const Estimate& one : estimates) least = std::min(least, one.error_at(moment, shift));
    return least;
  };
  std::uint64_t most = least_at(begin);
  for (std::size_t i = 1; i < moments.size(); i++) {
    std::uint64_t both = saturating_sum(least_at(moments[i - 1]), least_at(moments[i]));
    std::uint64_t drift = drift_over(distance(moments[i], moments[i - 1]));
    most = std::max(most, saturating_sum(both, drift) / 2 + 1);
  }
  return most;
}

void find_day(Boot& boot, const std::vector<TraceTimes>& traces) {
  std::vector<Estimate> estimates;
  bool said = false;  // how far a clock may be wrong
  for (std::size_t i : boot.traces) {
    const TraceTimes& trace = traces[i];
    auto at = static_cast<std::int64_t>(trace.at_begin.monotonic);
    std::int64_t from = at + static_cast<std::int64_t>(std::min(trace.since, LONGEST_UP)),
                 to = at + static_cast<std::int64_t>(std::min(trace.end, LONGEST_UP));
    bool is_first = i == boot.traces.front();
    boot.begin = is_first ? from : std::min(boot.begin, from);
    boot.end = is_first ? std::max(from, to) : std::max(boot.end, to);
    for (const Reading& reading : {trace.at_begin, trace.at_end.value_or(Reading{})}) {
      said |= reading.error.has_value();
      if (auto estimate = estimate_of(reading)) estimates.push_back(*estimate);
    }
    if (boot.has_day || !is_time_of_day(trace.at_begin)) continue;
    boot.has_day = true;
    boot.shift = static_cast<std::int64_t>(trace.at_begin.realtime) - at;
  }
  if (estimates.empty()) {
    boot.why_unknown = said ? "its clock is not synchronised"
                            : "the trace does not say how far its clock may be wrong";
    return;
  }
  boot.has_day = true;
  boot.shift =
      std::min_element(estimates.begin(), estimates.end(), [](const auto& a, const auto& b) {
        return a.error < b.error;
      })->shift;
  boot.error = error_within(boot.begin, boot.end, boot.shift, estimates);
}

std::vector<Boot> boots_of(const std::vector<TraceTimes>& traces, std::vector<Placed>& placed) {
  std::vector<Boot> boots;
  for (std::size_t i = 0; i < traces.size(); i++) {
    const TraceTimes& trace = traces[i];
    auto is_its = [&](const Boot& boot) {
      const TraceTimes& other = traces[boot.traces.front()];
      return !trace.boot_id.empty() && trace.boot_id == other.boot_id && trace.at_begin.monotonic &&
             other.at_begin.monotonic;
    };
    auto at = std::find_if(boots.begin(), boots.end(), is_its);
    if (at == boots.end()) at = boots.insert(at, Boot{});
    at->traces.push_back(i);
    placed[i].boot = static_cast<std::size_t>(at - boots.begin());
  }
  for (Boot& boot : boots) find_day(boot, traces);
  return boots;
}

std::optional<std::uint64_t> sum_of(const std::optional<std::uint64_t>& a,
                                    const std::optional<std::uint64_t>& b) {
  if (!a || !b) return std::nullopt;
  return saturating_sum(*a, *b);
}

std::vector<Meeting> of_boot(const Boot& boot, const std::vector<std::vector<Meeting>>& meetings) {
  std::vector<Meeting> all;
  for (std::size_t i : boot.traces)
    if (i < meetings.size()) all.insert(all.end(), meetings[i].begin(), meetings[i].end());
  std::ranges::stable_sort(all, {}, &Meeting::key);
  return all;
}

// The others beside the first: by what their ranks did together, where that says more than the time
// of day does.
void place(std::vector<Boot>& boots, const std::vector<std::vector<Meeting>>& meetings) {
  Boot& first = boots.front();
  first.alignment = Alignment::same_boot;
  first.bound = 0;
  std::vector<Meeting> met = of_boot(first, meetings);
  for (auto boot = boots.begin() + 1; boot != boots.end(); ++boot) {
    boot->bound = sum_of(first.error, boot->error);
    auto ahead =
        ahead_of(met, of_boot(*boot, meetings),
                 {static_cast<std::uint64_t>(boot->begin), static_cast<std::uint64_t>(boot->end)});
    if (!ahead || (boot->bound && *boot->bound <= ahead->bound_ns)) continue;
    boot->alignment = Alignment::collectives;
    boot->bound = ahead->bound_ns;
    boot->shift = first.shift + ahead->ns;
    boot->has_day = first.has_day;
    boot->error = sum_of(first.error, boot->bound);
    boot->why_unknown = first.why_unknown;
  }
}

}  // namespace

std::vector<Placed> on_one_time(const std::vector<TraceTimes>& given,
                                const std::vector<std::vector<Meeting>>& meetings) {
  std::vector<TraceTimes> traces = given;
  for (TraceTimes& trace : traces)
    if (trace.at_begin.monotonic >= LONGEST_UP) trace.at_begin = {};
  std::vector<Placed> placed(traces.size());
  std::vector<Boot> boots = boots_of(traces, placed);
  place(boots, meetings);
  bool days_count = std::ranges::any_of(
      boots, [](const Boot& boot) { return boot.alignment == Alignment::time_of_day; });
  std::vector<std::int64_t> begins;
  for (std::size_t i = 0; i < traces.size(); i++) {
    Placed& one = placed[i];
    const Boot& boot = boots[one.boot];
    if (days_count && !boot.has_day) one.why_not = "it does not say at what time of day it began";
    one.alignment = boot.alignment;
    one.error_ns = boot.error;
    one.bound_ns = boot.bound;
    if (!one.error_ns) one.why_unknown = boot.why_unknown;
    begins.push_back(static_cast<std::int64_t>(traces[i].at_begin.monotonic) + boot.shift);
  }
  std::optional<std::int64_t> earliest;
  for (std::size_t i = 0; i < traces.size(); i++)
    if (placed[i].why_not.empty()) earliest = std::min(earliest.value_or(begins[i]), begins[i]);
  for (std::size_t i = 0; i < traces.size(); i++)
    if (placed[i].why_not.empty()) placed[i].offset_ns = distance(begins[i], *earliest);
  return placed;
}

}  // namespace cudabpf::merge
