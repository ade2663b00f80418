// What bounds the work where GPUs' own times show how busy they were.
#include <fmt/format.h>

#include "analyze/summary/rules.hpp"

namespace cudabpf::analyze {

namespace {

// Percent of the stretch.
constexpr double KERNELS_MUCH = 50;          // a kernel runs that is no collective's
constexpr double KERNELS_ALWAYS = 80;        // hardly anything else can be waited for
constexpr double MEASURED_HOST_MUCH = 50;    // the GPU is idle because the host issues late
constexpr double PATH_MUCH = 50;             // of an iteration's critical path
constexpr double EXPOSED_MUCH = 20;          // only collectives run
constexpr double MEASURED_COPIES_MUCH = 20;  // only copies and fills run
constexpr double QUEUED_MUCH = 25;           // the GPU is idle though work was issued

std::string busy_text(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  return fmt::format("{}; GPU {} was busy for {} of it", judged.stretch.round_text(),
                     work.gpu->device, work.part_text(work.share.busy));
}

// Where one cause is nearly all of it, the others are not worth their room.
std::string why_idle(const Judged& judged) {
  constexpr double NEARLY_ALL = 95;  // percent of the idle time
  constexpr std::size_t CAUSES = 3;
  const MeasuredExecution& work = judged.measured;
  IdleTimes idle = work.share.idle;
  std::size_t main = static_cast<std::size_t>(idle.main());
  if (share(idle.of[main], work.share.idle_time()) >= NEARLY_ALL)
    return fmt::format(", almost all of it: {}", IDLE_CAUSE_INFOS[main].text);
  return ": " + causes_text(idle, work.share.time, CAUSES);
}

std::string idle_text(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  return fmt::format("{} and idle for {} (measured){}", busy_text(judged),
                     work.part_text(work.share.idle_time()), why_idle(judged));
}

// A kernel may run half of the time and hold nothing up, where the host takes longer meanwhile.
bool waits_for_work(const CriticalPath& path) {
  return !path.time() || share(path.working - path.communication, path.time()) >= PATH_MUCH;
}
bool waits_for_host(const CriticalPath& path) {
  return path.time() && share(path.host, path.time()) >= PATH_MUCH;
}

void add_gaps(Finding& finding, const Judged& judged) {
  for (const GpuGap& gap : judged.execution.gpus().longest(Judged::GAPS)) {
    if (gap.begin < finding.begin || gap.end > finding.end) continue;
    finding.add_call(gap.before_call);
    finding.add_call(gap.after_call);
  }
}

Found kernels(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  double running = work.percent_of(work.share.own_kernels);
  if (running < KERNELS_MUCH || (running < KERNELS_ALWAYS && !waits_for_work(work.path))) return {};
  Finding one = judged.finding("gpu_bound", "GPU-bound");
  one.text = busy_text(judged) + ", measured";
  if (const auto& kernels = judged.execution.gpus().kernels(); !kernels.empty()) {
    std::uint64_t all = 0;
    for (const auto& [name, kernel] : kernels) all += kernel.time;
    one.text += fmt::format("; {} took most, {} of all kernels' time",
                            judged.execution.gpus().name_of(kernels.front().first),
                            percent(kernels.front().second.time, all));
  }
  one.text += ". Faster kernels or less work would help, fewer launches would not.";
  return one;
}

std::string whole_text(const Judged& judged) {
  return judged.stretch.rounds ? "an iteration" : "the work";
}

// What a typical iteration waits for, which may be less than what runs.
std::string path_text(const Judged& judged) {
  const CriticalPath& path = judged.measured.path;
  if (!path.time()) return {};
  return fmt::format("; a typical iteration spends {} waiting for collectives",
                     percent(path.communication, path.time()));
}

// A GPU that runs nothing but collectives does not work for the program: it waits for other ranks,
// …
Found waiting(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  const TimeByRank& waiting = work.share.waiting;
  if (work.percent_of(time_waited(waiting)) < EXPOSED_MUCH) return {};
  Finding one = judged.finding(WAITING_FOR_RANK, "Waiting for " + awaited_text(waiting));
  one.text = fmt::format(
      "{} of {}, in collectives that no other work overlaps (measured); {}, for {} with other "
      "work{}. What "
      "that rank does meanwhile is what to look at: --pid chooses its process.",
      work.part_text(time_waited(waiting)), whole_text(judged), busy_text(judged),
      work.part_text(work.share.compute()), path_text(judged));
  return one;
}

// … or moves data.
Found communication(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  bool is_split = !work.share.waiting.empty();
  std::uint64_t moving = work.share.exposed - time_waited(work.share.waiting);
  if (work.percent_of(moving) < EXPOSED_MUCH) return {};
  Finding one = judged.finding("communication", "Communication");
  one.text = fmt::format(
      "{} of {} is collectives that no other work overlaps{} (measured); {}, for {} with other "
      "work{}. {}Run "
      "other work beside the collectives, in another stream, or make fewer and larger ones.",
      work.part_text(moving), whole_text(judged), is_split ? ", without waiting for ranks" : "",
      busy_text(judged), work.part_text(work.share.compute()), path_text(judged),
      is_split ? "" : "Part of it may be waiting for other ranks. ");
  return one;
}

Found late_host(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  bool holds_up =
      waits_for_host(work.path) && work.percent_of(work.share.own_kernels) < KERNELS_ALWAYS;
  if (work.percent_of(work.share.idle.host()) < MEASURED_HOST_MUCH && !holds_up) return {};
  Finding one = judged.finding("host_bound", "Host-bound");
  one.text =
      fmt::format("{}{}. {}", idle_text(judged),
                  holds_up ? fmt::format("; a typical iteration spends {} waiting for the host",
                                         percent(work.path.host, work.path.time()))
                           : "",
                  judged.host_advice());
  add_gaps(one, judged);
  return one;
}

Found copies(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  if (work.percent_of(work.only_copies()) < MEASURED_COPIES_MUCH) return {};
  Finding one = judged.finding("copies", "Copies");
  one.text = fmt::format(
      "{}, {} of it with copies and fills alone, measured. Copy less, from pinned memory, or "
      "beside the kernels in another stream.",
      busy_text(judged), work.part_text(work.only_copies()));
  judged.add_slowest(one);
  return one;
}

Found queued(const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  if (work.percent_of(work.share.idle.queue()) < QUEUED_MUCH) return {};
  Finding one = judged.finding("gpu_waits", "GPU idle between queued work");
  one.text = fmt::format(
      "{}. Fewer and larger kernels, CUDA graphs, or fewer dependencies between streams would "
      "help.",
      idle_text(judged));
  add_gaps(one, judged);
  return one;
}

}  // namespace

std::vector<Finding> measured_bounds(const Judged& judged) {
  std::vector<Finding> found;
  for (auto rule : {kernels, waiting, communication, late_host, copies, queued})
    if (Found one = rule(judged)) found.push_back(std::move(*one));
  return found;
}

Finding measured_mixed(const Judged& judged) {
  Finding one = judged.finding("mixed", "Mixed");
  one.text = idle_text(judged) + ": no single thing bounds it.";
  add_gaps(one, judged);
  return one;
}

void add_measured_figures(Finding& finding, const Judged& judged) {
  const MeasuredExecution& work = judged.measured;
  auto add = [&](std::string_view name, std::uint64_t time) {
    finding.figures.emplace_back(name, work.percent_of(time));
  };
  add("gpu_busy_share", work.share.busy);
  add("gpu_kernels_share", work.share.kernels);
  add("gpu_only_copies_share", work.only_copies());
  add("gpu_communication_share", work.share.communication);
  add("gpu_exposed_communication_share", work.share.exposed);
  add("gpu_waiting_for_ranks_share", time_waited(work.share.waiting));
  add("gpu_idle_share", work.share.idle_time());
  add("gpu_idle_by_host_share", work.share.idle.host());
  add("gpu_idle_though_issued_share", work.share.idle.queue());
}

}  // namespace cudabpf::analyze
