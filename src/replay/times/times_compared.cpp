#include "replay/times/times_compared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "replay/microseconds.hpp"
#include "state/kernel_classes.hpp"
#include "util/demangle/demangle.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::replay {

namespace {

constexpr std::string_view BY_TRACE = "the trace's own time";
constexpr std::string_view BY_KERNEL = "each by itself, after those before it";

// What a kernel's launches took in the trace, and which of them ran beside other operations.
struct Measured {
  std::vector<std::uint64_t> ns;
  std::vector<bool> beside_others;  // in the same order
};

class Comparing {
 public:
  Comparing(const Tape& tape, const Manifest& manifest)
      : manifest_(manifest), distinct_(distinct_launches(tape, manifest)) {}

  TimesCompared compare(const ActualTimes& actual, const std::optional<Timing>& full,
                        const std::vector<IsolatedLaunch>& isolated);

 private:
  void add_actual(std::vector<ActualOperation> operations);
  void add_launch(std::uint32_t launch, const std::optional<IsolatedTime>& isolated);
  void judge(ComparedLaunch& launch, const Measured& measured);
  void add_to_tier(const ComparedLaunch& launch, double predicted);
  void add_tiers();

  const Manifest& manifest_;
  std::vector<DistinctLaunch> distinct_;
  std::vector<Measured> measured_;
  ComparedTier copies_{"copies and fills", BY_TRACE}, gemms_{"GEMM libraries", BY_KERNEL},
      others_{"everything else", BY_KERNEL};
  TimesCompared result_;
};

bool is_beyond(double us, double limit, double sign) {
  double tolerance = std::max(TOLERANCE_US, limit * TOLERANCE_PERCENT / 100);
  return (us - limit) * sign > tolerance;
}

Place place_of(double us, double warm, double cold) {
  if (is_beyond(us, std::min(warm, cold), -1)) return Place::faster;
  return is_beyond(us, std::max(warm, cold), 1) ? Place::slower : Place::within;
}

bool takes_as_long_in_turn(double us, const ComparedLaunch& launch) {
  double slowest = std::max(*launch.cold_us, *launch.in_turn_us);
  return place_of(us, *launch.warm_us, slowest) == Place::within;
}

// Operations that overlap others, by their places.
std::vector<bool> overlaps_in(const std::vector<ActualOperation>& in_order) {
  std::vector<bool> overlaps(in_order.size());
  std::size_t latest = 0;  // the one that ends last so far
  for (std::size_t i = 1; i < in_order.size(); i++) {
    if (in_order[i].begin < in_order[latest].end) overlaps[i] = overlaps[latest] = true;
    if (in_order[i].end > in_order[latest].end) latest = i;
  }
  return overlaps;
}

void Comparing::add_actual(std::vector<ActualOperation> operations) {
  std::sort(operations.begin(), operations.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  auto overlaps = overlaps_in(operations);
  analyze::Union busy;
  std::uint64_t sum = 0;
  measured_.resize(distinct_.size());
  for (std::size_t i = 0; i < operations.size(); i++) {
    const ActualOperation& one = operations[i];
    std::uint64_t time = one.end - one.begin;
    busy.add(one.begin, one.end);
    sum += time;
    if (one.launch < measured_.size()) {
      measured_[one.launch].ns.push_back(time);
      measured_[one.launch].beside_others.push_back(overlaps[i]);
    } else if (one.op == analyze::GpuOp::kernel) {  // which launch it was is not known
      result_.not_timed++;
      result_.not_timed_us += us(time);
      others_.operations++;
      others_.actual_us += us(time);
      others_.total_us += us(time);
    } else {
      result_.copies++;
      result_.copies_us += us(time);
    }
  }
  result_.operations = operations.size();
  result_.busy_us = us(busy.total());
  result_.sum_us = us(sum);
  if (!operations.empty()) result_.span_us = us(busy.end() - operations.front().begin);
}

// Each of a kernel's launches, against what is known of it by itself.
void Comparing::judge(ComparedLaunch& launch, const Measured& measured) {
  for (std::size_t i = 0; i < measured.ns.size(); i++) {
    Place place = place_of(us(measured.ns[i]), *launch.warm_us, *launch.cold_us);
    launch.within += place == Place::within;
    result_.faster += place == Place::faster;
    result_.slower += place == Place::slower;
    if (place != Place::slower) continue;
    if (takes_as_long_in_turn(us(measured.ns[i]), launch))
      result_.slower_in_turn++;
    else
      result_.slower_beside += measured.beside_others[i];
  }
}

void Comparing::add_launch(std::uint32_t launch, const std::optional<IsolatedTime>& isolated) {
  const Measured& measured = measured_[launch];
  ComparedLaunch one{launch, distinct_[launch].count, measured.ns.size()};
  one.beside_others = static_cast<std::uint64_t>(
      std::count(measured.beside_others.begin(), measured.beside_others.end(), true));
  std::uint64_t total = std::accumulate(measured.ns.begin(), measured.ns.end(), std::uint64_t{0});
  one.total_us = us(total);
  if (one.measured) {
    one.mean_us = one.total_us / static_cast<double>(one.measured);
    one.median_us = median_us(measured.ns);
  }
  if (one.measured < one.count) result_.without_time += one.count - one.measured;
  double predicted = one.total_us, warm = one.total_us, cold = one.total_us;
  if (isolated && !isolated->warm_ns.empty() && !isolated->cold_ns.empty()) {
    one.warm_us = median_us(isolated->warm_ns);
    one.cold_us = median_us(isolated->cold_ns);
    one.in_turn_us = isolated->in_turn_ns.empty() ? *one.warm_us : median_us(isolated->in_turn_ns);
    one.has_delay = isolated->launches > 1;
    auto count = static_cast<double>(one.count);
    predicted = *one.in_turn_us * count;
    warm = *one.warm_us * count;
    cold = *one.cold_us * count;
    if (one.measured) one.place = place_of(one.median_us, *one.warm_us, *one.cold_us);
    if (isolated->does_less_again) {
      warm = cold = predicted;
      one.warm_us = one.cold_us = std::nullopt;
      if (one.measured) one.place = Place::does_less_again;
    } else {
      judge(one, measured);
      result_.judged += one.measured;
      result_.within += one.within;
    }
  } else {
    if (one.measured) one.place = Place::not_timed;
    result_.not_timed += one.measured;
    result_.not_timed_us += one.total_us;
  }
  result_.predicted_us += predicted;
  result_.predicted_warm_us += warm;
  result_.predicted_cold_us += cold;
  add_to_tier(one, predicted);
  result_.launches.push_back(one);
}

void Comparing::add_to_tier(const ComparedLaunch& launch, double predicted) {
  std::string name = demangle(manifest_.kernels[distinct_[launch.launch].kernel].name);
  bool is_gemm = class_of_kernel(name) == KernelClass::matrix_multiply;
  ComparedTier& tier = is_gemm ? gemms_ : others_;
  tier.unique_kernels++;
  tier.operations += launch.count;
  tier.total_us += predicted;
  tier.actual_us += launch.total_us;
}

void Comparing::add_tiers() {
  copies_.operations = result_.copies;
  copies_.total_us = copies_.actual_us = result_.copies_us;
  for (ComparedTier* tier : {&gemms_, &others_})
    if (tier->actual_us > 0) tier->error_percent = error_percent(tier->total_us, tier->actual_us);
  for (ComparedTier* tier : {&copies_, &gemms_, &others_}) result_.tiers.push_back(*tier);
}

TimesCompared Comparing::compare(const ActualTimes& actual, const std::optional<Timing>& full,
                                 const std::vector<IsolatedLaunch>& isolated) {
  result_.wall_us = us(actual.wall);
  add_actual(actual.operations);
  result_.predicted_us = result_.copies_us + result_.not_timed_us;
  result_.predicted_warm_us = result_.predicted_cold_us = result_.predicted_us;
  std::vector<std::optional<IsolatedTime>> times(distinct_.size());
  for (const IsolatedLaunch& one : isolated)
    if (one.launch < times.size()) times[one.launch] = one.time;
  for (std::uint32_t i = 0; i < distinct_.size(); i++) add_launch(i, times[i]);
  std::stable_sort(result_.launches.begin(), result_.launches.end(),
                   [](const auto& a, const auto& b) { return a.total_us > b.total_us; });
  add_tiers();
  if (full && !full->runs_ns.empty()) {
    result_.full_us = median_us(full->runs_ns);
    result_.full_runs = static_cast<std::uint32_t>(full->runs_ns.size());
  }
  return std::move(result_);
}

double share(double part, double whole) { return whole > 0 ? part / whole * 100 : 0; }

}  // namespace

double error_percent(double predicted, double actual) {
  return actual > 0 ? (predicted - actual) / actual * 100 : 0;
}

std::string ComparedLaunch::why() const {
  switch (place) {
    case Place::within:
      return "between a warm and a cold L2 cache";
    case Place::faster:
      return has_delay ? "warm has the GPU's delay between launches; perhaps a higher clock, too"
                       : "perhaps a higher clock, or another way of measuring";
    case Place::slower:
      if (takes_as_long_in_turn(median_us, *this))
        return "in turn it takes as long: perhaps what runs before it leaves data to be written "
               "back";
      return beside_others ? fmt::format("{} of {} ran beside other operations, which slows both",
                                         with_commas(beside_others), with_commas(measured))
                           : "nothing ran beside it: perhaps a lower clock";
    case Place::does_less_again:
      return "run over and over it does less than once, so only its time in turn says something";
    case Place::not_timed:
      return "it was not run by itself; the prediction has the trace's time";
    case Place::not_measured:
      break;
  }
  return "the trace has no time of it";
}

double TimesCompared::share_within() const {
  return share(static_cast<double>(within), static_cast<double>(judged));
}

std::vector<std::string> TimesCompared::reasons() const {
  std::vector<std::string> all;
  double gaps = std::max(0.0, span_us - busy_us), overlap = std::max(0.0, sum_us - busy_us);
  all.push_back(fmt::format(
      "Between its first operation and the end of its last the GPU had nothing to do for {:.1f} us "
      "({:.1f} %): the tape as a whole has such gaps, too, but waits for no program; a sum of "
      "kernels has none.",
      gaps, share(gaps, span_us)));
  all.push_back(overlap > 0
                    ? fmt::format("Operations overlapped for {:.1f} us, which a sum of kernels "
                                  "counts twice.",
                                  overlap)
                    : "No operations overlapped.");
  if (copies)
    all.push_back(
        fmt::format("{} ({:.1f} us) are in the prediction with the trace's own time: a "
                    "replay does not time them by themselves.",
                    count_of(copies, "copy or fill", "copies and fills"), copies_us));
  if (not_timed)
    all.push_back(
        fmt::format("{} ({:.1f} us) could not be timed by themselves, and are in it with "
                    "the trace's own time.",
                    count_of(not_timed, "launch", "launches"), not_timed_us));
  if (without_time)
    all.push_back(fmt::format("The trace has no time of {}: it is missing in the actual time.",
                              count_of(without_time, "launch", "launches")));
  bool has_delay = std::any_of(launches.begin(), launches.end(),
                               [](const ComparedLaunch& one) { return one.has_delay; });
  if (has_delay)
    all.push_back(
        "Warm times are the mean of launches that follow each other in a graph: they have the "
        "GPU's delay between two launches, up to a microsecond or so.");
  if (faster)
    all.push_back(fmt::format("{} faster than warm: {}by a higher clock.",
                              count_of(faster, "launch was", "launches were"),
                              has_delay ? "by that delay, perhaps, or " : "perhaps "));
  if (slower)
    all.push_back(fmt::format(
        "{} slower than cold: {} took as long in turn, perhaps since the launches before leave "
        "data "
        "in the cache that has to be written back; {} ran beside other operations, which slows "
        "both; otherwise perhaps by a lower clock.",
        count_of(slower, "launch was", "launches were"), with_commas(slower_in_turn),
        with_commas(slower_beside)));
  return all;
}

TimesCompared compare_times(const ActualTimes& actual, const std::optional<Timing>& full,
                            const std::vector<IsolatedLaunch>& isolated, const Tape& tape,
                            const Manifest& manifest) {
  return Comparing(tape, manifest).compare(actual, full, isolated);
}

}  // namespace cudabpf::replay
