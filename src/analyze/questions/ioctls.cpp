#include "analyze/questions/ioctls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analyze/derived/processes.hpp"
#include "util/hash.hpp"
#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {

void sort(std::vector<Ioctls::Figures>& all) {
  std::sort(all.begin(), all.end(), [](const Ioctls::Figures& a, const Ioctls::Figures& b) {
    return std::tuple(b.durations.total(), b.count, std::string_view(a.name)) <
           std::tuple(a.durations.total(), a.count, std::string_view(b.name));
  });
}

}  // namespace

Ioctls::Ioctls(Names& names) : names_(names) {
  words_ = {names.add("ioctl"), names.add("NV_OK"), names.add("(calls without a line)"),
            names.add("(others)")};
}

void Ioctls::Figures::add(const Figures& other) {
  count += other.count;
  ioctls += other.ioctls;
  failed += other.failed;
  durations.add(other.durations);
  calls += other.calls;
  of_calls += other.of_calls;
  call_time += other.call_time;
}

std::size_t Ioctls::KindHash::operator()(const Kind& kind) const {
  return hash_of(kind.op.id, kind.name.id, kind.detail.id, kind.group.id, kind.device.id,
                 kind.of_process);
}

void Ioctls::line(const Line& line) {
  switch (line.kind) {
    case LineKind::driver:
    case LineKind::interrupt:
      return operation(line);
    case LineKind::call:
      return call(line);
    default:
      return;
  }
}

void Ioctls::operation(const Line& line) {
  count(of_kind(line), line);
  if (line.pid) {
    OfProcess& process = of_process(line);
    count(process.all, line);
    if (!line.has(Field::call)) count(process.outside, line);
  }
  if (!line.has(Field::call)) return;
  if (!has_room_for(open_, line.call, MAX_OPEN_CALLS)) close_calls();
  count(open_[line.call], line);
}

Ioctls::Figures& Ioctls::of_kind(const Line& line) {
  Name detail = line.control ? line.control : line.object_class;
  Kind kind{line.op, line.name, detail, line.group, line.device_file, line.pid != 0};
  if (!has_room_for(kinds_, kind, MAX_KINDS)) {
    not_kept_apart_.kinds++;
    // Replaces the names that it has, so that no list leaves it out; ioctls have their own lists.
    if (kind.op != words_.ioctl) kind.op = words_.others;
    for (Name* name : {&kind.name, &kind.detail, &kind.group, &kind.device})
      if (*name) *name = words_.others;
  }
  return kinds_[kind];
}

Ioctls::OfProcess& Ioctls::of_process(const Line& line) {
  Process process{line.process->comm, line.pid};
  if (!has_room_for(processes_, process, MAX_PROCESSES)) {
    not_kept_apart_.processes++;
    process = {};
  }
  return processes_[process];
}

void Ioctls::count(Figures& figures, const Line& line) const {
  figures.count++;
  if (line.op == words_.ioctl) figures.ioctls++;
  if (line.kind == LineKind::driver && refused(line, words_.nv_ok)) figures.failed++;
  if (line.has(Field::duration)) figures.durations.add(line.duration);
}

void Ioctls::call(const Line& line) {
  if (line.name.id >= functions_.size()) functions_.resize(names_.size());
  functions_[line.name.id].calls++;
  if (open_.empty()) return;
  auto requests = open_.find(line.id);
  if (requests == open_.end()) return;
  requests->second.calls = 1;
  requests->second.call_time = line.duration;
  functions_[line.name.id].has_requests = true;
  add_function(line.name, requests->second);
  open_.erase(requests);
}

void Ioctls::add_function(Name function, const Figures& requests) {
  if (!has_room_for(requests_, function.id, MAX_FUNCTIONS)) {
    not_kept_apart_.functions += requests.count;
    function = words_.others;
  }
  requests_[function.id].add(requests);
}

// The lines of these calls are missing, except for a few that would still come.
void Ioctls::close_calls() {
  for (const auto& [call, requests] : open_) add_function(words_.calls_lost, requests);
  open_.clear();
}

void Ioctls::finish(const TraceFacts& facts) {
  close_calls();
  traced_ = facts.header.driver_traced.value_or(false);
  way_ = facts.header.driver_way;
}

// Adds up those with the same name; an empty name is left out.
template <typename NameOf>
std::vector<Ioctls::Figures> Ioctls::fold(NameOf name_of) const {
  HashMap<std::string, Figures> by_name;
  for (const auto& [kind, figures] : kinds_)
    if (std::string name = name_of(kind); !name.empty()) by_name[name].add(figures);
  std::vector<Figures> all;
  for (auto& [name, figures] : by_name) {
    figures.name = name;
    all.push_back(std::move(figures));
  }
  sort(all);
  return all;
}

Ioctls::Answer Ioctls::answer() const {
  auto text = [&](Name name) { return std::string(names_.text(name)); };
  Answer answer;
  answer.traced = traced_;
  answer.way = way_;
  answer.not_kept_apart = not_kept_apart_;
  answer.operations = fold([&](const Kind& kind) {
    bool is_interrupt = !kind.device && !kind.of_process;
    return is_interrupt ? fmt::format("{}: {}", text(kind.op), text(kind.name)) : text(kind.op);
  });
  answer.groups = fold([&](const Kind& kind) { return text(kind.group); });
  answer.commands = fold([&](const Kind& kind) {
    if (kind.op != words_.ioctl) return std::string();
    if (!kind.detail || kind.name == words_.others) return text(kind.name);
    return text(kind.name) == "NV_ESC_RM_CONTROL" ? text(kind.detail)
                                                  : text(kind.name) + " " + text(kind.detail);
  });
  answer.devices = fold([&](const Kind& kind) { return text(kind.device); });
  add_functions(answer);
  add_processes(answer);
  return answer;
}

void Ioctls::add_functions(Answer& answer) const {
  std::uint64_t others = 0;  // calls
  for (std::uint32_t id = 0; id < functions_.size(); id++)
    if (functions_[id].has_requests && !requests_.contains(id)) others += functions_[id].calls;
  for (const auto& [name, figures] : requests_) {
    Figures& of = answer.calls.emplace_back(figures);
    of.name = names_.text({name});
    if (name == words_.others.id)
      of.of_calls = others;
    else if (name < functions_.size())
      of.of_calls = functions_[name].calls;
  }
  sort(answer.calls);
}

void Ioctls::add_processes(Answer& answer) const {
  for (const auto& [process, figures] : processes_) {
    std::string_view comm = process.comm ? names_.text(process.comm) : "process";
    std::string name = process.pid ? fmt::format("{} ({})", comm, process.pid)
                                   : std::string(names_.text(words_.others));
    answer.processes.emplace_back(figures.all).name = name;
    if (figures.outside.count) answer.outside.emplace_back(figures.outside).name = name;
  }
  sort(answer.processes);
  sort(answer.outside);
}

}  // namespace cudabpf::analyze
