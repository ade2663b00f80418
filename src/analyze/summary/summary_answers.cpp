// What the page of a summary answers in words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "analyze/summary/summary.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

constexpr double MANY_UNTIMED = 5;  // percent of all calls: shares of time would be too low

using ByName = std::map<std::string, Totals::Times>;

Totals::Times sum_of(const ByName& times) {
  Totals::Times sum;
  for (const auto& [name, one] : times) {
    sum.count += one.count;
    sum.timed += one.timed;
    sum.time += one.time;
    sum.bytes += one.bytes;
    sum.failed += one.failed;
  }
  return sum;
}

std::string time_text(const Totals::Times& times) {
  return times.count && !times.timed ? "an unknown time" : human_time(times.time);
}

// "a 12 ms in 3, b 4 ms in 1, and 2 others"
std::string listed(const ByName& times, std::size_t at_most) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [name, one] : longest_first(times)) {
    if (shown == at_most) break;
    text += fmt::format("{}{} {} in {}", shown++ ? ", " : "", name, time_text(one),
                        with_commas(one.count));
    if (std::uint64_t untimed = one.count - one.failed - one.timed; untimed && one.timed)
      text += fmt::format(" ({} of unknown time)", with_commas(untimed));
  }
  if (shown < times.size()) text += ", and " + count_of(times.size() - shown, "other", "others");
  return text;
}

// "; kernels 2.67 ms (3.10 ms added up)": more than one ran at once.
std::string op_text(std::string_view name, const Busy::OfOp& of) {
  if (!of.count) return {};
  std::uint64_t time = of.united.total();
  return fmt::format("; {} {}{}", name, human_time(time),
                     of.sum > time ? fmt::format(" ({} added up)", human_time(of.sum)) : "");
}

// "; collectives 2.60 ms, 42.3 % of it hidden by other work"
std::string communication_text(const GpusAtWork::OfGpu& gpu) {
  WorkTime work = gpu.work_time();
  if (!work.communication) return {};
  std::string text =
      fmt::format("; collectives {}, {} of it hidden by other work", human_time(work.communication),
                  percent(work.hidden(), work.communication));
  if (TimeByRank waiting = gpu.waiting(); !waiting.empty())
    text += fmt::format(" and {} of it waiting for {}",
                        percent(time_waited(waiting), work.communication), awaited_text(waiting));
  return text;
}

// "193": three figures that count.
std::string three_figures(double number) {
  return number >= 1000 ? with_commas(static_cast<std::uint64_t>(std::llround(number)))
                        : fmt::format("{:.3g}", number);
}

// "35 iterations, 2 of warm-up and 33 of inference": as the phases count them, and how many of
// these are timed.
std::string counted_text(const Iterations& iterations) {
  std::uint64_t others = iterations.in_part - iterations.warm_up_in_part;
  std::string text = count_of(iterations.in_part, "iteration", "iterations");
  if (iterations.warm_up_in_part)
    text += fmt::format(", {} of warm-up and {} of inference",
                        with_commas(iterations.warm_up_in_part), with_commas(others));
  if (iterations.found == Iterations::Found::within_a_wait) text += ", without a wait after each";
  if (iterations.pauses)
    text += ", with " + count_of(iterations.pauses, "pause", "pauses") + " between them";
  // That the last one has no end goes without saying.
  if (std::uint64_t timed = iterations.times.count(); timed + 1 + iterations.pauses < others)
    text += fmt::format(" ({} timed)", with_commas(timed));
  return text;
}

// "; the longest: 7.72 s at 2.897963 s, 99.7 % of it outside CUDA"; `gaps` has the others.
std::string longest_text(std::span<const Gap> gaps, const Page& page) {
  if (gaps.empty()) return {};
  const Gap& gap = gaps.front();
  return fmt::format("; the longest: {} at {}, {} of it outside CUDA", human_time(gap.time()),
                     page.at(gap.begin), outside_calls(gap));
}

}  // namespace

// "gemm 86.2 % of 2.67 ms, softmax 10.8 %"
std::string Summary::kernels_answer(const Page&) const {
  constexpr std::size_t SHOWN = 3;
  const auto& kernels = execution_.gpus().kernels();
  std::uint64_t all = 0;
  for (const auto& [name, kernel] : kernels) all = saturating_sum(all, kernel.time);
  std::string text;
  for (std::size_t i = 0; i < std::min(SHOWN, kernels.size()); i++)
    text += fmt::format("{}{} {}{}", i ? ", " : "", execution_.gpus().name_of(kernels[i].first),
                        percent(kernels[i].second.time, all),
                        i ? "" : " of the GPU's " + human_time(all));
  return text;
}

// "inference 169 ms (1.0 %), loading 10.0 s (61.4 %)": in their order, those worth a word.
std::string Summary::phases_answer(const Page&) const {
  constexpr double WORTH_LISTING = 1;  // percent
  const Phases& phases = execution_.phases();
  std::string text;
  for (const Phase& phase : phases.phases) {
    double part = share(phase.time, phases.end - phases.begin);
    if (!phase.seen || (part < WORTH_LISTING && !phase.is_work)) continue;
    text += fmt::format("{}{} {} ({:.1f} %)", text.empty() ? "" : ", ", phase.name,
                        human_time(phase.time), part);
  }
  return text;
}

std::string Summary::iterations_answer(const Page&) const {
  const Iterations& iterations = execution_.iterations();
  if (iterations.found == Iterations::Found::none)
    return "no sequence of different kernels repeats at least three times";
  if (!iterations.in_part) return "none lies whole in this part";
  std::string text = count_of(iterations.launches, "launch", "launches");
  if (iterations.fewest != iterations.most)
    text +=
        fmt::format(" ({} to {})", with_commas(iterations.fewest), with_commas(iterations.most));
  if (iterations.kernels != iterations.launches && !totals_.graphs().unknown())
    text += " of " + count_of(iterations.kernels, "kernel", "kernels");
  const Durations& times = iterations.times;
  bool waits = iterations.found == Iterations::Found::between_waits;
  if (times.count())
    text += fmt::format(", {} {}(mean; p50 {}, p99 {})", human_time(times.mean()),
                        waits ? "" : "to enqueue it ", human_time(iterations.time_at(0.5)),
                        human_time(iterations.time_at(0.99)));
  if (double rate = stretch_.per_second(); rate > 0)
    text += fmt::format(", {} iterations/s", three_figures(rate));
  text += "; " + counted_text(iterations);
  bool timed = share(totals_.untimed, totals_.calls) < MANY_UNTIMED;
  if (times.count() && timed)
    text += fmt::format("; {} of the time in CUDA calls, {} waiting for the GPU",
                        percent(iterations.spent.in_calls, times.total()),
                        percent(iterations.spent.waiting, times.total()));
  if (!measured_.busy.empty())
    text += fmt::format("; GPU {} busy for {} of each (p50){}, measured", measured_.gpu->device,
                        human_time(quantile_of(measured_.busy, 0.5)),
                        measured_.share.communication
                            ? fmt::format(", with exposed communication for {}",
                                          human_time(quantile_of(measured_.exposed, 0.5)))
                            : "");
  if (execution_.thread()->segments_left_out)
    text += fmt::format("; only the first {} waits are looked at",
                        with_commas(ThreadsAtWork::MAX_SEGMENTS));
  return text;
}

std::string Summary::compute_answer(const Page&) const {
  Totals::Times waits = sum_of(totals_.waits);
  if (lacks_launches_ && !totals_.launches)
    return fmt::format("launches are not all in this trace; {} waiting for the GPU",
                       time_text(waits));
  std::string text =
      fmt::format("{} launching {}", time_text(totals_.launching),
                  count_of(totals_.launches - totals_.nested_launches, "kernel", "kernels"));
  if (totals_.recorded_launches)
    text += fmt::format(" ({} of them into graphs)", with_commas(totals_.recorded_launches));
  const GraphLaunches& graphs = totals_.graphs();
  if (totals_.graph_launches) text += " and " + count_of(totals_.graph_launches, "graph", "graphs");
  if (graphs.known())
    text += fmt::format(", in which {} ran", count_of(graphs.kernels(), "kernel", "kernels"));
  if (graphs.unknown())
    text += graphs.known() ? fmt::format("; what {} of the graphs ran is not known",
                                         with_commas(graphs.unknown()))
                           : "; what the graphs ran is not known";
  return text + fmt::format("; {} waiting for the GPU", time_text(waits));
}

std::string Summary::transfer_answer(const Page&) const {
  if (totals_.transfers.empty()) return "nothing was copied";
  std::string text;
  for (const auto& [direction, one] : longest_first(totals_.transfers))
    text +=
        fmt::format("{}{} {} in {}, {}", text.empty() ? "" : "; ", direction,
                    human_bytes(one.bytes), count_of(one.count, "call", "calls"), time_text(one));
  return text;
}

std::string Summary::of_processes(
    const std::function<std::string(const Idle::OfProcess&)>& text_of) const {
  constexpr std::size_t MAX_LISTED = 3;
  const auto& processes = execution_.idle().processes();
  std::string text;
  for (std::size_t i = 0; i < std::min(MAX_LISTED, processes.size()); i++) {
    text += i ? "; " : "";
    if (processes.size() > 1) text += process_text(processes[i].number, processes[i].pid) + ": ";
    text += text_of(processes[i]);
  }
  std::uint64_t all = processes.size() + execution_.idle().other_processes();
  if (all > MAX_LISTED)
    text += "; " + count_of(all - MAX_LISTED, "other process", "other processes");
  if (!text.empty()) return text;
  return lacks_launches_ ? "not known, since not all launches are in this trace"
                         : "nothing was launched or copied";
}

// Empty: nothing is measured.
std::string Summary::busy_answer(const Page&) const {
  const GpusAtWork& times = execution_.gpus();
  constexpr std::size_t MAX_LISTED = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(MAX_LISTED, times.gpus().size()); i++) {
    const GpusAtWork::OfGpu& gpu = times.gpus()[i];
    text += i ? "; " : "";
    if (processes() > 1) text += process_text(gpu.process, gpu.pid) + ", ";
    text += fmt::format("GPU {}: ", gpu.device);
    if (!gpu.operations) {
      text += "nothing ran, measured";
      continue;
    }
    text += percent(gpu.busy_time(), gpu.window());
    if (double error = gpu.by_window.error(); error > 0)
      text += fmt::format(" (± {:.1f})", 100 * error);
    text += fmt::format(" of {} {}, measured", human_time(gpu.window()), times.window_text());
    text += op_text("kernels", gpu.busy.of(GpuOp::kernel));
    text += communication_text(gpu);
    text += op_text("copies", gpu.busy.of(GpuOp::copy));
    text += op_text("fills", gpu.busy.of(GpuOp::set));
    if (std::uint64_t both = gpu.busy.overlap())
      text += fmt::format("; kernels and copies at once {}", human_time(both));
    if (gpu.to_idle_start.count())
      text += fmt::format("; from call to start when idle: p50 {}, p99 {}",
                          human_time(gpu.to_idle_start.quantile(0.5)),
                          human_time(gpu.to_idle_start.quantile(0.99)));
  }
  if (times.gpus().size() > MAX_LISTED)
    text += fmt::format("; {} more", times.gpus().size() - MAX_LISTED);
  return text;
}

// What a typical iteration waited for. Empty: it is not known.
std::string Summary::path_answer(const Page&) const {
  const CriticalPath& path = measured_.path;
  if (!path.time()) return {};
  constexpr std::size_t MAX_LISTED = 3;
  std::string text = fmt::format(
      "a typical iteration takes {}: it waits {} for the host, {} for the GPU to begin and {} for "
      "its work",
      human_time(path.time()), percent(path.host, path.time()), percent(path.latency, path.time()),
      percent(path.working, path.time()));
  for (std::size_t i = 0; i < std::min(MAX_LISTED, path.operations.size()); i++)
    text += fmt::format(
        "{}{} {} in {}", i ? ", " : ": ", execution_.gpus().name_of(path.operations[i].name),
        percent(path.operations[i].time, path.time()), with_commas(path.operations[i].count));
  if (path.operations.size() > MAX_LISTED)
    text += ", and " + count_of(path.operations.size() - MAX_LISTED, "other", "others");
  return text;
}

std::string Summary::measured_idle(const Page& page) const {
  const GpusAtWork& times = execution_.gpus();
  constexpr std::size_t MAX_LISTED = 3;
  std::string text;
  if (std::uint64_t time = inference_time(); time && measured_.gpu) {
    GpuCurve::Share share = measured_.gpu->curve.between(
        part_.clipped(execution_.iterations().warm), part_.clipped(execution_.iterations().end));
    text = fmt::format("{} of the {} of inference; ", percent(share.idle_time(), share.time),
                       human_time(times.sampled() ? share.time : time));
  }
  for (std::size_t i = 0; i < std::min(MAX_LISTED, times.gpus().size()); i++) {
    const GpusAtWork::OfGpu& gpu = times.gpus()[i];
    text += i ? "; " : "";
    if (processes() > 1) text += process_text(gpu.process, gpu.pid) + ", ";
    text += fmt::format("GPU {}: {} of {} {}, in {}", gpu.device, human_time(gpu.idle_time()),
                        human_time(gpu.window()), times.window_text(),
                        count_of(gpu.idle.count(), "gap", "gaps"));
    std::string why = causes_text(gpu.by_cause, gpu.idle_time(), 3);
    if (!why.empty()) text += ", " + why;
  }
  if (!times.longest().empty()) {
    const GpuGap& longest = times.longest().front();
    text += fmt::format("; the longest: {} at {}, {}", human_time(longest.time()),
                        page.at(longest.begin), info_of(longest.times.main()).text);
  }
  return text;
}

std::string Summary::idle_answer(const Page& page) const {
  if (!execution_.gpus().gpus().empty()) return measured_idle(page);
  std::string text;
  // Only what a wait has seen the end of is known to be done.
  if (std::uint64_t time = inference_time()) {
    text = fmt::format("at least {} of the {} of inference", percent(inference_idle(), time),
                       human_time(time));
    text += verdict_shows("host_bound")
                ? " (a lower bound: the GPU probably idled between launches too); "
                : "; ";
  }
  text += of_processes([](const Idle::OfProcess& process) {
    return fmt::format("at least {} of {} from first to last work, in {}",
                       percent(process.idle.total(), process.working_time),
                       human_time(process.working_time),
                       count_of(process.idle.count(), "gap", "gaps"));
  });
  return text + longest_text(execution_.idle().longest_idle(), page);
}

std::string Summary::between_answer(const Page& page) const {
  return of_processes([](const Idle::OfProcess& process) {
           return fmt::format("{} (p50 {}) between launches, while nothing was waited for",
                              human_time(process.between.total()),
                              human_time(process.between.quantile(0.5)));
         }) +
         longest_text(execution_.idle().longest_between(), page);
}

std::string Summary::blocked_answer(const Page&) const {
  Totals::Times all = sum_of(totals_.waits);
  const GpusAtWork::Waited& copies = execution_.gpus().waited();
  std::string text;
  if (all.count)
    text = fmt::format("{} in calls that wait for the GPU: {}", time_text(all),
                       listed(totals_.waits, 3));
  if (copies.calls)
    text += fmt::format(
        "{}{} in {} that waited for the GPU, measured", text.empty() ? "" : "; ",
        human_time(copies.time),
        count_of(copies.calls, "asynchronous copy to the host", "asynchronous copies to the host"));
  return text.empty() ? "nothing waited for the GPU" : text;
}

// By the code that asked for it, or by the functions of CUDA if none of that is known.
std::string Summary::who_held(const MemoryPeak::Holders& holders) const {
  if (!memory_.asked().empty()) return biggest_text(holders.files, names_);
  MemoryParts functions;
  for (const auto& group : holders.groups)
    functions.of(group.function.id, {.name = group.function}).bytes += group.bytes;
  return biggest_text(functions.take(std::less()), names_);
}

// How much of PyTorch's largest reservation in any process was not allocated, if over half.
std::string Summary::unused_answer() const {
  const auto& allocators = memory_.blocks().allocators();
  if (allocators.empty()) return {};
  const Blocks::Level& most = allocators.front().levels().most_reserved;
  if (most.unused() <= most.reserved / 2) return {};
  return fmt::format("; of {} that PyTorch had reserved at most, {} was not allocated",
                     human_bytes(most.reserved), human_bytes(most.unused()));
}

// "GPU 354 MiB at most, at 10.9 s: 354 MiB by cuMemAlloc; 0 B left when the trace ended"
std::string Summary::memory_answer(const Page& page) const {
  std::string text;
  for (auto side : {Memory::Side::gpu, Memory::Side::host}) {
    auto index = static_cast<std::size_t>(side);
    const MemoryPeak& peak = memory_.all().peaks[index];
    if (!peak.bytes()) continue;
    std::string who = who_held(memory_.all().at_peak[index]);
    std::uint64_t held = 0;
    for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++)
      if (Memory::side_of(static_cast<MemoryKind>(kind)) == side)
        held += memory_.all().held.kinds[kind];
    text += fmt::format(
        "{}{} {} at most, at {}{}; {} left when the {} ended", text.empty() ? "" : "; ",
        side == Memory::Side::gpu ? "GPU" : "pinned host memory", human_bytes(peak.bytes()),
        page.at(peak.ts()), who, human_bytes(held), part_.is_whole() ? "trace" : "part");
  }
  const auto& processes = memory_.holders();  // the highest peak first
  if (processes.size() > 1 && processes.front().pid)
    text += "; most by " + process_name(processes.front().pid, names_.text(processes.front().comm));
  if (text.empty() && memory_.not_returned())
    return count_of(memory_.not_returned(), "allocation was", "allocations were") +
           " not seen to return: what is held is not known";
  if (text.empty()) return "nothing was allocated";
  if (memory_.never_freed_bytes()) {
    const Memory::Block& largest = memory_.never_freed().front().block;
    text += fmt::format("; {} in {} not freed before the process ended, the largest {} by {} at {}",
                        human_bytes(memory_.never_freed_bytes()),
                        count_of(memory_.never_freed_blocks(), "block was", "blocks were"),
                        human_bytes(largest.size), names_.text({largest.function}),
                        page.at(largest.since));
  }
  text += unused_answer();
  if (memory_.left_out().any())
    text += fmt::format("; {} not followed, being too many at once",
                        count_of(memory_.left_out().blocks, "allocation", "allocations"));
  return text;
}

std::string Summary::driver_answer(const Page&) const {
  if (!totals_.driver_calls)
    return header_.driver_traced.value_or(false) ? "no requests were made to it"
                                                 : "not traced (needs --kernel)";
  return fmt::format("{}: {}", count_of(totals_.driver_calls, "operation", "operations"),
                     listed(totals_.groups, 6));
}

std::string Summary::scheduler_answer(const Page& page) const {
  if (!totals_.driver_calls) return "not traced (needs --kernel)";
  Totals::Times all = sum_of(totals_.scheduling);
  if (!all.count) return "no ioctl was about scheduling";
  std::string when = fmt::format("from {} to {}", page.at(totals_.first_scheduling),
                                 page.at(totals_.last_scheduling));
  if (totals_.first_launch)
    when +=
        fmt::format(", {} after the first launch",
                    totals_.scheduling_after_launch ? with_commas(totals_.scheduling_after_launch)
                                                    : std::string("none"));
  return fmt::format("{}, {}: {}", count_of(all.count, "ioctl", "ioctls"), when,
                     listed(totals_.scheduling, 3));
}

}  // namespace cudabpf::analyze
