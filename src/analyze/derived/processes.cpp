#include "analyze/derived/processes.hpp"

#include <algorithm>
#include <limits>

#include "trace/header.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

// Launchers set one of these for all of a job; LOCAL_RANK counts a host's processes alone.
std::optional<std::uint32_t> rank_in(const Line& line) {
  if (line.text.find("\"rank\"") == std::string_view::npos) return {};
  auto process = parsed(line.text);
  const auto* variables = member_of(process, "rank");
  for (const char* variable : {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
    if (auto rank = variables ? number_in<std::uint32_t>(*variables, variable) : std::nullopt)
      return rank;
  return {};
}

// More ranks than any communicator has: no communicator knows better than the launcher.
constexpr std::uint32_t TOLD = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Processes::Processes(Names& names, std::size_t most)
    : names_(names),
      start_(names.add("start")),
      fork_(names.add("fork")),
      exec_(names.add("exec")),
      exit_(names.add("exit")),
      most_(most) {}

void Processes::follow(Line& line) {
  lines_++;
  if (!left_.empty()) {
    left_.clear();
    gone_.clear();
  }
  bool of_process = line.kind == LineKind::process;
  if (line.kind == LineKind::header) {
    // If the trace begins later, as one that was kept in memory does, its processes began before
    // it.
    all_seen_begin_ |= line.header->mode == "run" && !line.header->part.since;
  }
  if (line.kind == LineKind::communicator) note_communicator(line);
  if (line.kind == LineKind::range)
    if (auto at = live_.find(line.pid); at != live_.end()) line.process = &at->second;
  if (!of_process && !is_of_thread(line.kind)) return;
  // A process that begins may have the pid of another, whose exit was not seen.
  if (of_process && (line.op == start_ || line.op == fork_)) leave(line.pid);
  Process& process = this->process(line.pid);
  process.last_line = lines_;
  process.host = line.host;
  line.process = &process;
  if (of_process) {
    note(line, process);
    line.new_program = line.op == exec_;
    if (line.op == exit_) leave(line.pid);
  }
  line.gone = gone_;
}

Process& Processes::process(std::uint32_t pid) {
  if (last_ && last_->pid == pid) return *last_;
  auto at = live_.find(pid);
  if (at == live_.end()) {
    if (live_.size() >= most_) put_quiet_away();
    Process process;
    process.number = ++numbers_;
    process.pid = pid;
    process.seen_begin = all_seen_begin_;
    at = live_.emplace(pid, process).first;
  }
  last_ = &at->second;
  return *last_;
}

void Processes::note(const Line& line, Process& process) {
  if (line.has(Field::ppid)) process.ppid = line.ppid;
  if (line.comm) process.comm = line.comm;
  if (line.command) process.command = line.command;
  if (line.op == exit_) return;  // it may already have left its container
  process.known = true;
  process.container = container_in(line);
  process.rank = rank_in(line);
  process.ranks = process.rank ? TOLD : 0;
  if (line.op == fork_ || line.op == exec_) process.seen_begin = true;
  if (line.op != exec_) process.began = line.ts;
}

void Processes::note_communicator(Line& line) {
  auto at = live_.find(line.pid);
  if (at == live_.end()) return;
  Process& process = at->second;
  line.process = &process;
  auto told = parsed(line.text);
  auto rank = number_in<std::uint32_t>(told, "rank"),
       ranks = number_in<std::uint32_t>(told, "ranks");
  if (!rank || !ranks || *ranks <= process.ranks) return;
  process.rank = rank;
  process.ranks = *ranks;
}

Name Processes::container_in(const Line& line) {
  if (line.text.find("\"container\"") == std::string_view::npos) return {};
  auto process = parsed(line.text);
  auto container = process.find("container");
  if (container == process.end() || !container->is_object()) return {};
  return names_.add(text_in(*container, "runtime") + " " + text_in(*container, "id").substr(0, 12));
}

void Processes::leave(std::uint32_t pid) {
  auto at = live_.find(pid);
  if (at == live_.end()) return;
  left_.push_back(live_.extract(at));
  gone_.push_back(&left_.back().mapped());
  last_ = nullptr;
}

// Puts away half of them, so that this is not done often.
void Processes::put_quiet_away() {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_line;
  for (const auto& [pid, process] : live_) by_line.emplace_back(process.last_line, pid);
  auto middle = by_line.begin() + static_cast<std::ptrdiff_t>((by_line.size() + 1) / 2);
  std::nth_element(by_line.begin(), middle - 1, by_line.end());
  std::sort(by_line.begin(), middle);
  for (auto one = by_line.begin(); one != middle; ++one) leave(one->second);
  put_away_ += static_cast<std::uint64_t>(middle - by_line.begin());
}

}  // namespace cudabpf::analyze
