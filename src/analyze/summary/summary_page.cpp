#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/summary/summary.hpp"
#include "analyze/trace/json_text.hpp"
#include "follow/error_meanings.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

void Summary::add_to(Page& page, bool all) const {
  add_head(page);
  add_thread(page, !all);
  if (!verdict_.empty()) page.blank();
  add_verdict(page, verdict_);
  constexpr std::size_t SOME_GPUS = 4, MANY_GPUS = 64;
  add_gpus(page, totals_.gpus, all ? MANY_GPUS : SOME_GPUS);
  auto sampling = header_.find("sampling");
  add_residence(page, totals_.gpus, all ? MANY_GPUS : SOME_GPUS,
                sampling == header_.end() ? "" : text_in(*sampling, "switches_why"));
  if (processes() > 1 && all) add_processes(page);
  if (totals_.devices.size() > 1 && all) add_devices(page);
  if (!course_.thread()) {
    add_errors(page);
    return;
  }
  constexpr std::size_t SOME_KERNELS = 3, MANY_KERNELS = 10;
  if (course_.gpus().measured())
    add_gpu_kernels(page, course_.gpus(), all ? MANY_KERNELS : SOME_KERNELS);
  add_phases(page, course_.phases(), all);
  add_answers(page, all);
  if (!all) return;
  add_slowest(page);
  add_errors(page);
}

void Summary::add_head(Page& page) const {
  page.heading(fmt::format("{} of {} in {}{}", count_of(totals_.calls, "call", "calls"),
                           count_of(processes(), "process", "processes"), human_time(duration_),
                           totals_.unfinished
                               ? fmt::format("; {} did not return", with_commas(totals_.unfinished))
                               : ""));
  std::string what = text_in(header_, "mode");
  if (auto command = header_.find("command"); command != header_.end() && command->is_array()) {
    what.clear();
    for (const Json& word : *command)
      if (word.is_string()) what += (what.empty() ? "" : " ") + word.get<std::string>();
  }
  page.line("  " + shortened(printable(what), page.width() - 2));
  if (totals_.untimed > totals_.unfinished)
    page.paragraph(
        fmt::format("{} of the calls have no duration in this trace: the times and shares below "
                    "omit them.",
                    percent(totals_.untimed, totals_.calls)),
        2);
}

// Whose phases and iterations are shown. `if_others`: only if another thread launches, too.
void Summary::add_thread(Page& page, bool if_others) const {
  const ThreadWork* thread = course_.thread();
  if (!thread) return;
  std::uint64_t others = totals_.launched() - thread->launches_in_part;
  if (if_others && !others && !course_.others_launch()) return;
  std::string chosen = wanted_.pid ? ", with most of its kernels" : ", with most kernels";
  if (!part_.is_whole()) chosen += " in the whole trace";
  page.paragraph(fmt::format("Phases and iterations are of thread {} of process {}{}{}.",
                             thread->tid, thread->pid, wanted_.tid ? "" : chosen,
                             others ? fmt::format("; others launch {}", with_commas(others)) : ""),
                 2);
}

void Summary::add_processes(Page& page) const {
  constexpr std::size_t SHOWN = 6;
  Table table("processes", {{"threads", 1}, {"calls"}, {"launches"}, {"waiting"}});
  auto row = [&](std::string name, const ProcessWork& process) {
    table.row(std::move(name), {human_count(process.threads), human_count(process.calls),
                                human_count(process.launches), human_time(process.waiting)});
  };
  const auto& processes = course_.threads().processes();
  ProcessWork others = course_.threads().others();
  for (std::size_t i = 0; i < processes.size(); i++)
    if (i < SHOWN)
      row(fmt::format("{} {}", processes[i].pid, names_.text(processes[i].comm)), processes[i]);
    else
      others.add(processes[i]);
  if (this->processes() > SHOWN)
    row(count_of(this->processes() - SHOWN, "other", "others"), others);
  table.add_to(page);
  if (course_.threads().put_away())
    page.paragraph(
        fmt::format(
            "There were more than {} threads at once: {} that were quiet for longest were taken "
            "to have ended, and count as others if they come again.",
            with_commas(ThreadsAtWork::MAX_THREADS), with_commas(course_.threads().put_away())),
        2);
}

void Summary::add_devices(Page& page) const {
  constexpr std::size_t SHOWN = 16;
  Table table("GPUs", {{"launches"}, {"copies", 1}, {"copied"}, {"waiting"}});
  for (std::size_t i = 0; i < std::min(SHOWN, totals_.devices.size()); i++) {
    const Totals::Device& device = totals_.devices[i];
    std::string name = fmt::format("GPU {}", device.ordinal);
    if (processes() > 1) name += fmt::format(" of process {}", device.pid);
    table.row(std::move(name), {human_count(device.launches), human_count(device.copies.count),
                                human_bytes(device.copies.bytes), human_time(device.waits.time)});
  }
  table.add_to(page);
  if (totals_.devices.size() > SHOWN)
    page.line(fmt::format("  and {} more", totals_.devices.size() - SHOWN));
}

void Summary::add_slowest(Page& page) const {
  constexpr std::size_t SHOWN = 5;
  const auto& slowest = totals_.slowest;
  Table table("slowest calls", {{"at"}, {"time"}, {"process", 1}, {"", 0, true}}, 20);
  for (std::size_t i = 0; i < std::min(SHOWN, slowest.size()); i++)
    table.row(std::string(names_.text(slowest[i].name)),
              {page.at(slowest[i].ts), human_time(slowest[i].duration),
               processes() > 1 ? std::to_string(slowest[i].pid) : "", totals_.what_of(slowest[i])});
  if (!table.empty()) table.add_to(page);
}

void Summary::add_errors(Page& page) const {
  constexpr std::size_t SHOWN = 5;
  std::vector<FailedCalls> failed;
  Table table("errors", {{"error", 0, true}, {"count"}});
  std::size_t kinds = 0;
  for (const Totals::Failure& failure : totals_.failures) {
    std::string_view name = names_.text(failure.name), error = names_.text(failure.error);
    failed.push_back({name, error, failure.count});
    if (!is_usual(name, error) && kinds++ < SHOWN)
      table.row(std::string(name), {std::string(error), human_count(failure.count)});
  }
  if (totals_.xids) table.row("GPU", {"Xid", human_count(totals_.xids)});
  if (!table.empty()) table.add_to(page);
  if (kinds > SHOWN || totals_.xids) page.line("  `cudabpf errors` tells more.");
  auto sentences = usual_failures(failed);
  if (!sentences.empty()) page.blank();
  for (const std::string& sentence : sentences) page.paragraph(sentence, 0);
}

}  // namespace cudabpf::analyze
