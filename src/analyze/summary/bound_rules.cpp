#include <fmt/format.h>

#include "analyze/summary/rules.hpp"

namespace cudabpf::analyze {

namespace {

using Sure = Finding::Sure;

// Shares are in percent of the stretch.
constexpr double WAITS_LITTLE = 10;  // the GPU keeps up with what it is given
constexpr double HARDLY_WAITS = 2;   // there is no doubt that it does
constexpr double WAITS_MUCH = 50;    // the program waits for the GPU most of the time
constexpr double MOSTLY_WAITS = 80;  // there is no doubt that it does
constexpr double HOST_MUCH = 50;     // outside CUDA, or launching
constexpr double COPIES_MUCH = 20;   // in copies to the GPU
constexpr double ALLOCATES_MUCH = 15;
constexpr double LOADS_MUCH = 15;  // code
constexpr double OTHERS_MUCH = 25;
// Launches that take this long (ns), and this much of the time, find the GPU's queue full.
constexpr std::uint64_t SLOW_LAUNCH = 50'000;
constexpr double SLOW_LAUNCHES = 30;

bool is_queue_full(const Stretch& stretch) {
  return stretch.launches && stretch.spent.launching / stretch.launches >= SLOW_LAUNCH &&
         stretch.share(stretch.spent.launching) >= SLOW_LAUNCHES;
}

bool is_gpu_bound(const Stretch& stretch) {
  return stretch.share(stretch.waiting()) >= WAITS_MUCH || is_queue_full(stretch);
}

Found gpu_bound(const Judged& judged) {
  const Stretch& stretch = judged.stretch;
  if (!is_gpu_bound(stretch)) return {};
  bool by_waits = stretch.share(stretch.waiting()) >= WAITS_MUCH;
  Finding one =
      judged.finding("gpu_bound", "GPU-bound",
                     stretch.share(stretch.waiting()) >= MOSTLY_WAITS ? Sure::known : Sure::likely);
  std::string how =
      by_waits ? fmt::format(
                     "{} of it waiting for the GPU{}", stretch.part_text(stretch.waiting()),
                     stretch.spent.to_host > stretch.spent.waiting ? " in copies to the host" : "")
               : fmt::format("{} of it launching, {} a launch, as when the GPU's queue is full",
                             stretch.part_text(stretch.spent.launching),
                             human_time(stretch.spent.launching / stretch.launches));
  one.text =
      fmt::format("{}, {}. Faster kernels or less work would help, fewer launches would not.",
                  stretch.round_text(), how);
  judged.add_slowest(one);
  return one;
}

bool keeps_up(const Stretch& stretch) {
  return !is_gpu_bound(stretch) && stretch.share(stretch.waiting()) < WAITS_LITTLE;
}

Found host_bound(const Judged& judged) {
  const Stretch& stretch = judged.stretch;
  if (!keeps_up(stretch) || stretch.share(stretch.outside() + stretch.spent.launching) < HOST_MUCH)
    return {};
  Finding one =
      judged.finding("host_bound", "Host-bound",
                     stretch.share(stretch.waiting()) < HARDLY_WAITS ? Sure::known : Sure::likely);
  std::string how = stretch.outside() >= stretch.spent.launching
                        ? fmt::format("{} of it outside CUDA between {}",
                                      stretch.part_text(stretch.outside()), stretch.launches_text())
                        : fmt::format("{} of it in {}", stretch.part_text(stretch.spent.launching),
                                      stretch.launches_text());
  one.text = fmt::format("{}, {}; copies from the GPU and waits take {}. {}", stretch.round_text(),
                         how, stretch.part_text(stretch.waiting()), judged.host_advice());
  Judged::add_gaps(one, judged.execution.idle().longest_between(Judged::GAPS));
  return one;
}

// Calls that take much of the work's time, though they bring it no further.
struct Burden {
  std::string_view id;
  double at_least;
  std::uint64_t (*time_of)(const Stretch&);
  std::string_view title, text;
};
constexpr Burden BURDENS[] = {
    {"copies", COPIES_MUCH, [](const Stretch& stretch) { return stretch.spent.to_device; },
     "Copies",
     "in copies to the GPU. Copy less, from pinned memory, or beside the kernels in another "
     "stream."},
    {"allocating", ALLOCATES_MUCH, [](const Stretch& stretch) { return stretch.spent.memory; },
     "Blocked on memory",
     "in calls that allocate, free and map memory. Keep it, or take it from a pool."},
    {"loading_code", LOADS_MUCH, [](const Stretch& stretch) { return stretch.spent.module; },
     "Blocked on code",
     "in calls that load and compile code, even after warm-up. Load it all before."},
    {"other_calls", OTHERS_MUCH, [](const Stretch& stretch) { return stretch.others(); },
     "Blocked on other calls",
     "in calls that neither launch, copy, wait nor allocate. `cudabpf calls` lists them."},
};

Found burden(const Judged& judged, const Burden& burden) {
  const Stretch& stretch = judged.stretch;
  std::uint64_t time = burden.time_of(stretch);
  if (stretch.share(time) < burden.at_least) return {};
  Finding one = judged.finding(burden.id, burden.title);
  one.text =
      fmt::format("{}, {} of it {}", stretch.round_text(), stretch.part_text(time), burden.text);
  judged.add_slowest(one);
  return one;
}

// Where GPUs' own times are known: what the host does while they are busy delays nothing, and
// copies are judged by when they ran.
bool is_felt(const Judged& judged, const Burden& burden) {
  const MeasuredExecution& work = judged.measured;
  return burden.id != "copies" && work.percent_of(work.share.idle.host()) >= burden.at_least;
}

Finding mixed(const Judged& judged) {
  const Stretch& stretch = judged.stretch;
  Finding one = judged.finding("mixed", "Mixed");
  one.text = fmt::format(
      "{}, {} of it outside CUDA, {} in {} and {} waiting for the GPU or for copies to the "
      "host: no single thing bounds it.",
      stretch.round_text(), stretch.part_text(stretch.outside()),
      stretch.part_text(stretch.spent.launching), stretch.launches_text(),
      stretch.part_text(stretch.waiting()));
  judged.add_slowest(one);
  return one;
}

}  // namespace

std::vector<Finding> bounds(const Judged& judged) {
  std::vector<Finding> found;
  if (!judged.is_worth_judging() || !judged.can_be_judged()) return found;
  const Stretch& stretch = judged.stretch;
  auto add = [&](Found one) {
    if (one) found.push_back(std::move(*one));
  };
  bool measured = judged.measured.can_judge;
  if (measured) {
    found = measured_bounds(judged);
  } else {
    add(gpu_bound(judged));
    add(host_bound(judged));
  }
  for (const Burden& one : BURDENS)
    if (!measured || is_felt(judged, one)) add(burden(judged, one));
  if (found.empty()) found.push_back(measured ? measured_mixed(judged) : mixed(judged));
  for (Finding& one : found) {
    one.add_call(judged.execution.iterations().typical.first_call);
    one.figures = {{"time_us", microseconds(stretch.time)},
                   {"rounds", static_cast<double>(stretch.rounds)},
                   {"launches", static_cast<double>(stretch.launches)},
                   {"outside_share", stretch.share(stretch.outside())},
                   {"launching_share", stretch.share(stretch.spent.launching)},
                   {"waiting_share", stretch.share(stretch.waiting())},
                   {"to_device_share", stretch.share(stretch.spent.to_device)},
                   {"memory_share", stretch.share(stretch.spent.memory)},
                   {"module_share", stretch.share(stretch.spent.module)},
                   {"others_share", stretch.share(stretch.others())}};
    if (measured) add_measured_figures(one, judged);
  }
  return found;
}

}  // namespace cudabpf::analyze
