#include "analyze/ioctls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

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
  words_ = {names.add("ioctl"), names.add("NV_OK"), names.add("exit"),
            names.add("(calls without a line)")};
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
  std::uint64_t hash = std::uint64_t{kind.pid} << 1 | (kind.in_call ? 1 : 0);
  for (Name name : {kind.op, kind.name, kind.detail, kind.group, kind.device, kind.comm}) {
    hash = (hash ^ name.id) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

void Ioctls::line(const Line& line) {
  switch (line.kind) {
    case LineKind::driver:
    case LineKind::interrupt:
      return operation(line);
    case LineKind::call:
      return call(line);
    case LineKind::process:
      if (line.op == words_.exit)
        comms_.erase(line.pid);
      else if (line.comm)
        comms_[line.pid] = line.comm;
      return;
    default:
      return;
  }
}

void Ioctls::operation(const Line& line) {
  Kind kind{line.op,
            line.name,
            line.control ? line.control : line.object_class,
            line.group,
            line.device,
            {},
            line.pid,
            line.has(Field::call)};
  if (auto comm = comms_.find(line.pid); comm != comms_.end()) kind.comm = comm->second;
  if (kinds_.size() >= MAX_KINDS && !kinds_.contains(kind)) kind = {};
  count(kinds_[kind], line);
  if (!line.has(Field::call)) return;
  std::uint64_t call = line.call;
  if (open_.size() >= MAX_OPEN_CALLS && !open_.contains(call)) call = 0;
  count(open_[call], line);
}

void Ioctls::count(Figures& figures, const Line& line) const {
  figures.count++;
  if (line.op == words_.ioctl) figures.ioctls++;
  if (line.kind == LineKind::driver && refused(line, words_.nv_ok)) figures.failed++;
  if (line.has(Field::duration)) figures.durations.add(line.duration);
}

void Ioctls::call(const Line& line) {
  if (line.name.id >= calls_of_.size()) calls_of_.resize(names_.size());
  calls_of_[line.name.id]++;
  if (open_.empty()) return;
  auto asked = open_.find(line.id);
  if (asked == open_.end()) return;
  asked->second.calls = 1;
  asked->second.call_time = line.duration;
  functions_[line.name.id].add(asked->second);
  open_.erase(asked);
}

void Ioctls::finish(const TraceFacts& facts) {
  for (const auto& [call, asked] : open_) functions_[words_.calls_lost.id].add(asked);
  open_.clear();
  auto header = nlohmann::json::parse(facts.header, nullptr, false);
  if (!header.is_object()) return;
  traced_ = header.value("driver_traced", Json()) == true;
  if (auto way = header.find("driver_way"); way != header.end() && way->is_string()) way_ = *way;
}

// All that have the same name together; an empty one is left out.
template <typename NameOf>
std::vector<Ioctls::Figures> Ioctls::fold(NameOf name_of) const {
  std::unordered_map<std::string, Figures> by_name;
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
  auto is_interrupt = [](const Kind& kind) { return kind.op && !kind.device && !kind.pid; };
  auto process = [&](const Kind& kind) {
    if (!kind.pid) return std::string();
    return fmt::format("{} ({})", kind.comm ? text(kind.comm) : "process", kind.pid);
  };
  Answer answer;
  answer.traced = traced_;
  answer.way = way_;
  answer.operations = fold([&](const Kind& kind) {
    if (!kind.op) return std::string("(too many to be kept apart)");
    return is_interrupt(kind) ? fmt::format("{}: {}", text(kind.op), text(kind.name))
                              : text(kind.op);
  });
  answer.groups = fold([&](const Kind& kind) { return text(kind.group); });
  answer.commands = fold([&](const Kind& kind) {
    if (kind.op != words_.ioctl) return std::string();
    if (!kind.detail) return text(kind.name);
    return text(kind.name) == "NV_ESC_RM_CONTROL" ? text(kind.detail)
                                                  : text(kind.name) + " " + text(kind.detail);
  });
  answer.devices = fold([&](const Kind& kind) { return text(kind.device); });
  answer.processes = fold(process);
  answer.outside =
      fold([&](const Kind& kind) { return kind.in_call ? std::string() : process(kind); });
  for (const auto& [name, figures] : functions_) {
    answer.calls.push_back(figures);
    answer.calls.back().name = text({name});
    if (name < calls_of_.size()) answer.calls.back().of_calls = calls_of_[name];
  }
  sort(answer.calls);
  return answer;
}

}  // namespace cudabpf::analyze
