#include "analyze/questions/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analyze/derived/processes.hpp"
#include "util/hash.hpp"
#include "util/limited.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t TEXT_KEPT = 400;  // of arguments, and of the driver's message

// What an operation was about: its command or its class.
Name detail_of(const Line& line) { return line.control ? line.control : line.object_class; }

}  // namespace

Errors::Errors(Names& names, bool all) : names_(names), all_(all) {
  words_ = {names.add("NV_OK"), names.add("exit"), names.add("memory could not be read")};
}

std::size_t Errors::KindHash::operator()(const Kind& kind) const {
  return hash_of(kind.number, kind.name.id, kind.detail.id, kind.error.id);
}

void Errors::Failure::add_process(std::uint64_t number) {
  auto at = std::lower_bound(processes.begin(), processes.end(), number);
  if (at != processes.end() && *at == number) return;
  if (processes.size() < MAX_PROCESSES) processes.insert(at, number);
}

void Errors::Failure::add(const Failure& other) {
  for (std::uint64_t process : other.processes) add_process(process);
  count += other.count;
  first = std::min(first, other.first);
  last = std::max(last, other.last);
}

void Errors::line(const Line& line) {
  switch (line.kind) {
    case LineKind::call:
      call(line);
      break;
    case LineKind::driver:
      operation(line);
      break;
    case LineKind::gpu_error:
      gpu_error(line);
      break;
    case LineKind::process:
      if (line.op == words_.exit) exit(line);
      break;
    default:
      break;
  }
  for (const Process* gone : line.gone) processes_.erase(gone->number);
}

// A process's end may lie outside, with its calls in the part; or the other way round.
void Errors::outside(const Line& line) {
  if (line.kind == LineKind::call) see(line);
  if (line.kind == LineKind::process && line.op == words_.exit) end_open_calls(line);
  for (const Process* gone : line.gone) processes_.erase(gone->number);
}

void Errors::see(const Line& line) {
  Seen& seen = processes_[line.process->number];
  seen.last = {line.id, line.ts, line.name, line.error, line.unfinished};
  if (line.failed()) seen.last_failure = seen.last;
}

void Errors::call(const Line& line) {
  answer_.calls++;
  if (!line.has(Field::ret)) answer_.without_result++;
  see(line);
  if (line.read_fault) note(read_faults_, {line.name, {}, words_.read_fault}, line);
  if (line.unfinished) {
    answer_.calls_open++;
    open(line, line.name);
  }
  if (!line.failed()) return;
  answer_.failed_calls++;
  note(failures_, {line.name, {}, line.error, line.error ? 0 : line.ret}, line);
  event(line, line.name, error_text(line.error, line.ret));
}

void Errors::operation(const Line& line) {
  Name what = detail_of(line) ? detail_of(line) : line.name;
  if (line.unfinished) open(line, what);
  if (line.read_fault) note(read_faults_, {line.name, detail_of(line), words_.read_fault}, line);
  if (!refused(line, words_.nv_ok)) return;
  answer_.failed_operations++;
  Name error = line.failed() ? line.error : line.status;
  note(refusals_, {line.name, detail_of(line), error, error ? 0 : line.ret}, line);
  event(line, what, error_text(error, line.ret));
}

void Errors::gpu_error(const Line& line) {
  Kind kind{line.name, line.bus_id, {}};
  bool is_new = !gpu_errors_.contains(kind);
  note(gpu_errors_, kind, line);
  auto error = parsed(line.text);
  std::string meaning = text_in(error, "meaning").substr(0, TEXT_KEPT);
  if (meaning.empty()) meaning = "of unknown meaning";
  if (is_new && gpu_errors_.contains(kind)) {
    Failure& failure = gpu_errors_[kind];
    failure.error = meaning;
    failure.example.text = text_in(error, "message").substr(0, TEXT_KEPT);
  }
  event(line, line.name, meaning);
}

// Calls that were open when it ended come before its exit.
void Errors::end_open_calls(const Line& line) {
  for (Open& open : answer_.open) {
    if (open.pid != line.pid || open.process_ended) continue;
    open.process_ended = true;
    open.open_for = line.ts > open.ts ? line.ts - open.ts : 0;
  }
}

void Errors::exit(const Line& line) {
  auto seen = processes_.find(line.process->number);
  end_open_calls(line);
  auto process = parsed(line.text);
  if (process.is_object()) {
    Exit exit{line.pid,
              line.ts,
              std::string(names_.text(line.comm)),
              integer_in(process, "exit_code").value_or(0),
              integer_in(process, "signal").value_or(0),
              {},
              {}};
    if (seen != processes_.end()) {
      if (seen->second.last.name) exit.last_call = seen->second.last;
      if (seen->second.last_failure.name) exit.last_failure = seen->second.last_failure;
    }
    if (exit.code || exit.signal) {
      event(line, line.comm,
            exit.signal ? fmt::format("ended by signal {}", exit.signal)
                        : fmt::format("exit status {}", exit.code));
      answer_.bad_exits++;
      if (answer_.exits.size() < MAX_EXITS) answer_.exits.push_back(std::move(exit));
    }
  }
}

void Errors::note(Failures& failures, const Kind& kind, const Line& line) {
  bool too_many = !has_room_for(failures, kind, MAX_KINDS);
  Failure& failure = failures[too_many ? Kind{} : kind];
  if (!failure.count++)
    failure.example = {line.kind == LineKind::call ? line.id : line.call, line.ts, line.pid,
                       line.tid, std::string(line.args.substr(0, TEXT_KEPT))};
  if (line.process) failure.add_process(line.process->number);
  failure.first = std::min(failure.first, line.ts);
  failure.last = std::max(failure.last, line.ts);
}

void Errors::open(const Line& line, Name what) {
  event(line, what, "did not return");
  answer_.all_open++;
  if (answer_.open.size() >= MAX_OPEN) return;
  bool is_call = line.kind == LineKind::call;
  answer_.open.push_back({line.id, is_call ? line.parent : line.call,
                          std::string(names_.text(what)), line.ts, 0, false, line.pid, line.tid,
                          std::string(line.args.substr(0, TEXT_KEPT))});
}

std::string Errors::error_text(Name error, std::int64_t ret) const {
  return error ? std::string(names_.text(error)) : fmt::format("result {}", ret);
}

void Errors::event(const Line& line, Name what, std::string error) {
  if (!all_) return;
  if (answer_.events.size() >= MAX_EVENTS) {
    answer_.events_left_out++;
    return;
  }
  answer_.events.push_back({line.ts, line.kind == LineKind::call ? line.id : line.call, line.pid,
                            line.tid, std::string(names_.text(what)), std::move(error)});
}

void Errors::finish(const TraceFacts& facts) {
  for (Open& open : answer_.open)
    if (!open.process_ended && facts.duration() > open.ts)
      open.open_for = facts.duration() - open.ts;
  std::stable_sort(answer_.open.begin(), answer_.open.end(),
                   [](const Open& a, const Open& b) { return a.open_for > b.open_for; });
  std::stable_sort(answer_.events.begin(), answer_.events.end(),
                   [](const Event& a, const Event& b) { return a.ts < b.ts; });
}

std::vector<Errors::Failure> Errors::sorted(const Failures& failures) const {
  std::vector<Failure> all;
  for (const auto& [kind, failure] : failures) {
    all.push_back(failure);
    Failure& one = all.back();
    one.name = kind.name ? names_.text(kind.name) : "(others)";
    if (kind.detail) one.name += " " + std::string(names_.text(kind.detail));
    if (kind.error) one.error = names_.text(kind.error);
    if (kind.number) one.error = fmt::format("result {}", kind.number);
    one.weight = meaning_of(one.name, one.error).weight;
  }
  std::sort(all.begin(), all.end(), [](const Failure& a, const Failure& b) {
    return std::tie(a.weight, b.count, a.first, a.name, a.error) <
           std::tie(b.weight, a.count, b.first, b.name, b.error);
  });
  return all;
}

Errors::Answer Errors::answer() const {
  Answer answer = answer_;
  answer.failures = sorted(failures_);
  for (const Failure& failure : answer.failures)
    if (failure.weight == Weight::usual) answer.usual_failures += failure.count;
  answer.refusals = sorted(refusals_);
  answer.gpu_errors = sorted(gpu_errors_);
  answer.read_faults = sorted(read_faults_);
  return answer;
}

}  // namespace cudabpf::analyze
