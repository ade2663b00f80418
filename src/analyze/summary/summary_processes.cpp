// The process whose phases and verdict a summary shows, and what the others did.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/summary/rules.hpp"
#include "analyze/summary/summary.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

Json figures_json(const ProcessWork& process) {
  return {{"threads", process.threads},
          {"calls", process.calls},
          {"launches", process.launches},
          {"waiting_us", microseconds(process.waiting)}};
}

}  // namespace

std::string Summary::command_of(const ProcessWork& process) const {
  constexpr std::size_t LONGEST = 400;
  return shortened(std::string(names_.text(process.command)), LONGEST);
}

// By the rules of the verdict: whatever bounds the thread of each that launches most.
void Summary::judge_processes(const Seen& seen) {
  const auto& threads = execution_.threads().threads();
  // The busiest comes last: it is the one that everything else is about.
  for (auto thread = threads.rbegin(); thread != threads.rend(); ++thread) {
    if (threads.size() > 1) execution_.look_at(*thread);
    if (!thread->launches) continue;
    Judged judged(seen);
    steps_.push_back(steps_of(judged));
    if (auto found = bounds(judged); !found.empty()) steps_.back().bound = std::move(found.front());
  }
  sort_steps(steps_);
  show_one_that_waits();
}

// Ranks of a job launch alike, and one may have a launch more by chance: what makes the others wait
// is not seen in the one that is late, but in those that wait for it.
void Summary::show_one_that_waits() {
  constexpr std::uint64_t ALIKE = 20;  // launches differ by less than one in so many
  const auto& threads = execution_.threads().threads();
  if (wanted_.any() || threads.empty()) return;
  auto waits = [&](const ThreadWork& thread) {
    const Finding* bound = bound_of(thread.process);
    return bound && bound->id == WAITING_FOR_RANK;
  };
  std::uint64_t most = threads.front().most_launched();
  for (const ThreadWork& thread : threads) {
    if (most - std::min(most, thread.most_launched()) > most / ALIKE || !waits(thread)) continue;
    execution_.look_at(thread);
    return;
  }
}

bool Summary::shows_one_that_waits() const {
  return !wanted_.any() && execution_.thread() != &execution_.threads().threads().front();
}

// Why this thread is shown.
std::string_view Summary::chosen() const {
  return wanted_.any()            ? "asked for"
         : shows_one_that_waits() ? "waits for another rank"
                                  : "launches most";
}

const Finding* Summary::bound_of(std::uint64_t process) const {
  for (const Steps& steps : steps_)
    if (steps.process == process && steps.bound) return &*steps.bound;
  return nullptr;
}

std::string Summary::process_text(std::uint64_t number, std::uint32_t pid) const {
  for (const ProcessWork& process : execution_.threads().processes())
    if (process.number == number) return process_name(pid, names_.text(process.comm));
  return process_name(pid, {});
}

std::uint64_t Summary::other_launches() const {
  std::uint64_t own = execution_.thread() ? execution_.thread()->launches_in_part : 0;
  return totals_.launched() - std::min(totals_.launched(), own);
}

// None: nothing is measured for it.
std::optional<std::uint64_t> Summary::gpu_time_of(std::uint64_t process) const {
  std::optional<std::uint64_t> time;
  for (const GpusAtWork::OfGpu& gpu : execution_.gpus().gpus())
    if (gpu.process == process) time = time.value_or(0) + gpu.busy_time();
  return time;
}

void Summary::add_shown(Page& page, bool always) const {
  const ThreadWork* thread = execution_.thread();
  if (!thread) return;
  std::uint64_t others = other_launches();
  if (!always && processes() == 1 && !others && !execution_.others_launch()) return;
  std::string why = wanted_.tid   ? ""
                    : wanted_.pid ? ", which launches most of its threads"
                                  : fmt::format(", which {}", chosen());
  if (!why.empty() && !part_.is_whole() && !shows_one_that_waits()) why += " in the whole trace";
  std::string rest =
      others ? fmt::format(" (other threads: {})", count_of(others, "launch", "launches")) : "";
  page.paragraph(fmt::format("The verdict, phases and iterations describe thread {} of {}{}{}.",
                             thread->tid, process_text(thread->process, thread->pid), why, rest),
                 2);
}

// Its number; 0: none is shown.
std::uint64_t Summary::shown_process() const {
  return execution_.thread() ? execution_.thread()->process : 0;
}

// The shown one first.
std::vector<ProcessWork> Summary::processes_in_order() const {
  std::vector<ProcessWork> processes = execution_.threads().processes();
  std::uint64_t shown = shown_process();
  std::stable_partition(processes.begin(), processes.end(),
                        [&](const ProcessWork& process) { return process.number == shown; });
  return processes;
}

void Summary::add_processes(Page& page, std::size_t at_most) const {
  Table table(
      "processes",
      {{"threads", 3}, {"calls"}, {"launches"}, {"waiting", 2}, {"GPU time", 1}, {"", 0, true}});
  auto row = [&](std::string name, const ProcessWork& process, std::string bound) {
    std::optional<std::uint64_t> gpu = gpu_time_of(process.number);
    table.row(std::move(name), {human_count(process.threads), human_count(process.calls),
                                human_count(process.launches), human_time(process.waiting),
                                gpu ? human_time(*gpu) : "", std::move(bound)});
  };
  std::vector<ProcessWork> processes = processes_in_order();
  std::uint64_t shown = shown_process();
  ProcessWork others = execution_.threads().others();
  for (std::size_t i = 0; i < processes.size(); i++) {
    const ProcessWork& process = processes[i];
    if (i >= at_most) {
      others.add(process);
      continue;
    }
    const Finding* bound = bound_of(process.number);
    std::string text = bound ? bound->heading() : "";
    if (process.number == shown) text += text.empty() ? "shown below" : " (shown below)";
    std::string host =
        process.host ? fmt::format(" on {}", names_.text(process.host)) : std::string();
    row(fmt::format("{} {}{}", process.pid, names_.text(process.comm), host), process,
        std::move(text));
  }
  if (this->processes() > at_most)
    row(count_of(this->processes() - at_most, "other", "others"), others, "");
  table.add_to(page);
  if (execution_.threads().put_away())
    page.paragraph(
        fmt::format("There were more than {} threads at once: the {} that were quiet for longest "
                    "were taken to have ended, and count as new ones if they call again.",
                    with_commas(ThreadsAtWork::MAX_THREADS),
                    with_commas(execution_.threads().put_away())),
        2);
}

Json Summary::processes_json() const {
  Json json = Json::array();
  std::uint64_t shown = shown_process();
  for (const ProcessWork& process : processes_in_order()) {
    Json one = {{"pid", process.pid},
                {"comm", names_.text(process.comm)},
                {"command", command_of(process)},
                {"shown", process.number == shown}};
    if (process.host) one["host"] = names_.text(process.host);
    one.update(figures_json(process));
    if (auto gpu = gpu_time_of(process.number)) one["gpu_us"] = microseconds(*gpu);
    one["verdict"] = nullptr;
    if (const Finding* bound = bound_of(process.number))
      one["verdict"] = {
          {"id", bound->id}, {"title", bound->title}, {"sure", Finding::text_of(bound->sure)}};
    json.push_back(std::move(one));
  }
  return json;
}

Json Summary::other_processes_json() const {
  Json json = figures_json(execution_.threads().others());
  json["count"] = execution_.threads().other_processes();
  return json;
}

Json Summary::shown_json() const {
  const ThreadWork* thread = execution_.thread();
  if (!thread) return nullptr;
  Json json = {{"pid", thread->pid}, {"tid", thread->tid}};
  for (const ProcessWork& process : execution_.threads().processes())
    if (process.number == thread->process)
      json.update(Json{{"comm", names_.text(process.comm)}, {"command", command_of(process)}});
  json["chosen"] = chosen();
  json["launches"] = thread->launches_in_part;
  json["other_launches"] = other_launches();
  json["processes"] = processes();
  return json;
}

}  // namespace cudabpf::analyze
