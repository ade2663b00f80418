#include <fmt/format.h>

#include <algorithm>

#include "analyze/summary/summary.hpp"
#include "state/error_meanings.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

// The most wanted first.
struct Summary::Answer {
  std::string_view word;
  std::string (Summary::*text)(const Page&) const;
  bool is_table = false;  // where there is room
  bool spare = false;     // with --all only
  bool last_before_tables = false;
};
constexpr Summary::Answer Summary::ANSWERS[] = {
    {"each iteration", &Summary::iterations_answer},
    {.word = "GPU idle", .text = &Summary::idle_answer, .last_before_tables = true},
    {.word = "GPU kernels", .text = &Summary::kernels_answer, .is_table = true},
    {.word = "phases", .text = &Summary::phases_answer, .is_table = true},
    {"ranges", &Summary::ranges_answer},
    {"GPU busy", &Summary::busy_answer},
    {"bound by", &Summary::path_answer},
    {"memory", &Summary::memory_answer},
    {"transfer", &Summary::transfer_answer},
    {"compute", &Summary::compute_answer},
    {"blocked", &Summary::blocked_answer},
    {.word = "launch gaps", .text = &Summary::between_answer, .spare = true},
    {.word = "driver", .text = &Summary::driver_answer, .spare = true},
    {.word = "scheduler", .text = &Summary::scheduler_answer, .spare = true}};

void Summary::add_to(Page& page, bool all) const {
  add_head(page);
  constexpr std::size_t SOME_PROCESSES = 4, MANY_PROCESSES = 64;
  if (processes() > 1) add_processes(page, all ? MANY_PROCESSES : SOME_PROCESSES);
  add_shown(page, all);
  if (!verdict_.empty()) page.blank();
  add_verdict(page, verdict_);
  constexpr std::size_t SOME_GPUS = 4, MANY_GPUS = 64;
  add_gpus(page, totals_.gpus, all ? MANY_GPUS : SOME_GPUS);
  add_residence(page, totals_.gpus, all ? MANY_GPUS : SOME_GPUS,
                header_.sampling ? header_.sampling->switches_why_not : "");
  if (totals_.devices.size() > 1 && all) add_devices(page);
  if (execution_.thread()) add_answers(page, all);
  if (execution_.thread() && !all) return;
  if (all) add_slowest(page);
  add_errors(page);
}

void Summary::add_head(Page& page) const {
  page.heading(fmt::format("{} of {} in {}{}", count_of(totals_.calls, "call", "calls"),
                           count_of(processes(), "process", "processes"), human_time(duration_),
                           totals_.unfinished
                               ? fmt::format("; {} did not return", with_commas(totals_.unfinished))
                               : ""));
  page.line("  " + shortened(printable(traced_text()), page.width() - 2));
  if (totals_.untimed > totals_.unfinished)
    page.paragraph(
        fmt::format("{} of the calls have no duration in this trace: the times and shares below "
                    "omit them.",
                    percent(totals_.untimed, totals_.calls)),
        2);
}

// The command that was run; or whatever else was traced.
std::string Summary::traced_text() const {
  std::string words;
  if (header_.command)
    for (const std::string& word : *header_.command) words += (words.empty() ? "" : " ") + word;
  if (!words.empty()) return words;
  const auto& known = execution_.threads().processes();
  bool one = processes() == 1 && known.size() == 1;
  std::string_view command = one ? names_.text(known.front().command) : "";
  if (one && !command.empty()) return fmt::format("{}  (pid {})", command, known.front().pid);
  if (one) return process_text(known.front().number, known.front().pid);
  const auto& pids = header_.pids;
  if (header_.mode == "attach" && !pids.empty()) {
    constexpr std::size_t SHOWN = 4;
    std::string text = "attached to";
    for (std::size_t i = 0; i < std::min(SHOWN, pids.size()); i++)
      text += fmt::format("{} {}", i ? "," : "", pids[i]);
    return text + (pids.size() > SHOWN ? ", …" : "");
  }
  return header_.mode == "machine" ? "every process on the machine" : header_.mode;
}

// What people want first comes first. On a terminal, as much of it as fits.
void Summary::add_answers(Page& page, bool all) const {
  constexpr std::size_t SOME_KERNELS = 3, MANY_KERNELS = 10;
  std::size_t begin = page.size(), room = page.height() ? page.height() - 1 : 0;
  page.blank();
  for (const Answer& answer : ANSWERS) {
    if (answer.is_table || (answer.spare && !all)) continue;
    if (std::string text = (this->*answer.text)(page); !text.empty()) page.term(answer.word, text);
    if (answer.last_before_tables) {
      if (execution_.gpus().measured())
        add_gpu_kernels(page, execution_.gpus(), all ? MANY_KERNELS : SOME_KERNELS);
      if (steps_.size() > 1) add_steps(page, steps_, names_);
      if (steps_.size() > 1)
        add_phases_beside(page, steps_, all);
      else
        add_phases(page, execution_.phases(), all);
      page.blank();
    }
  }
  if (!all) page.line("  --all shows more");
  if (all || !room || page.lines() <= room) return;
  page.cut(begin);
  add_what_fits(page, room);
}

// Tables as a line or two.
void Summary::add_what_fits(Page& page, std::size_t lines) const {
  page.blank();
  for (const Answer& answer : ANSWERS) {
    std::size_t end = page.size();
    std::string text = answer.spare ? "" : (this->*answer.text)(page);
    if (!text.empty()) page.term(answer.word, text);
    if (page.lines() + 1 > lines) page.cut(end);
  }
  page.line("  --all shows the rest");
}

void Summary::add_devices(Page& page) const {
  constexpr std::size_t SHOWN = 16;
  Table table("GPUs", {{"launches"}, {"copies", 1}, {"copied"}, {"waiting"}});
  for (std::size_t i = 0; i < std::min(SHOWN, totals_.devices.size()); i++) {
    const Totals::Device& device = totals_.devices[i];
    std::string name = fmt::format("GPU {}", device.ordinal);
    if (processes() > 1) name += " of " + process_text(device.process, device.pid);
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
  if (kinds > SHOWN || totals_.xids) page.line("  `cudabpf errors` shows more.");
  auto sentences = usual_failures(failed);
  if (!sentences.empty()) page.blank();
  for (const std::string& sentence : sentences) page.paragraph(sentence, 0);
}

}  // namespace cudabpf::analyze
