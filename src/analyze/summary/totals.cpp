#include "analyze/summary/totals.hpp"

#include <algorithm>
#include <limits>

#include "analyze/derived/processes.hpp"
#include "util/limited.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

void add_to(Totals::Times& times, const Line& line) {
  times.count++;
  times.failed += line.failed();
  if (line.failed()) return;  // it moved nothing
  times.timed += line.has(Field::duration);
  times.time += line.duration;
  times.bytes += line.size;
}

void count_in(std::vector<std::uint64_t>& counts, Name name) {
  if (name.id >= counts.size()) counts.resize(name.id + std::size_t{1});
  counts[name.id]++;
}

}  // namespace

Totals::Totals(Names& names)
    : names_(names),
      kernels_(names),
      graphs_(names),
      scheduling_(names.add("scheduling")),
      ioctl_(names.add("ioctl")),
      others_(names.add("(others)")),
      exit_(names.add("exit")) {}

void Totals::line(const Line& line) {
  count_in(type_counts_, line.type);
  count_in(name_counts_, line.name);
  kernels_.line(line);
  if (line.kind == LineKind::call) call(line);
  if (line.kind == LineKind::driver) driver(line);
  if (line.kind == LineKind::process) process(line);
  xids += line.kind == LineKind::gpu_error;
  if (line.sample) gpus.add(*line.sample);
}

void Totals::call(const Line& line) {
  calls++;
  unfinished += line.unfinished;
  untimed += !line.has(Field::duration);
  note_slow(slow_calls_, line);
  if (line.failed()) {
    Name name = line.name, error = line.error;
    auto key = [&] { return std::uint64_t{name.id} << 32 | error.id; };
    if (!has_room_for(failures_, key(), MAX_KINDS)) name = error = others_;
    Failure& failure = failures_[key()];
    if (!failure.count++) failure = {name, error, 1, line.ts, line.id};
  }
  bool is_launch = line.meaning->node == NodeWork::kernel;
  launches += is_launch;
  bool is_nested = !is_counted(line);
  nested_launches += is_launch && is_nested;
  if (line.meaning->memory == MemoryEffect::alloc) {
    allocations.count++;
    allocations.failed += line.failed();
    if (line.size <= std::numeric_limits<std::uint64_t>::max() - allocations.bytes)
      allocations.bytes += line.size;  // a call may claim any size
  }
  if (is_nested) return;
  Work work = line.work;
  if (line.has(Field::ordinal)) device(line, work);
  switch (work) {
    case Work::recorded:
      recorded_launches += is_launch;
      break;
    case Work::launch:
      graph_launches += !is_launch;
      if (!line.failed()) is_launch ? void(ran++) : graphs_.launched(line);
      add_to(launching, line);
      first_launch = std::min(first_launch ? first_launch : line.ts, line.ts);
      break;
    case Work::to_device:
    case Work::to_host:
    case Work::copy:
      add_to(of(transfers_, direction_of(line, names_)), line);
      break;
    case Work::wait:
      add_to(of(waits_, line.name), line);
      break;
    default:
      break;
  }
}

void Totals::device(const Line& line, Work work) {
  bool copies = work == Work::to_device || work == Work::to_host || work == Work::copy;
  if (!copies && work != Work::launch && work != Work::wait) return;
  std::pair key(line.process->number, line.ordinal);
  if (!has_room_for(devices_, key, MAX_DEVICES)) return;
  Device& device = devices_[key];
  device.process = line.process->number;
  device.pid = line.pid;
  device.ordinal = line.ordinal;
  device.launches += work == Work::launch;
  if (copies) add_to(device.copies, line);
  if (work == Work::wait) add_to(device.waits, line);
}

void Totals::process(const Line& line) {
  if (line.process && line.process->comm) gpus.named(line.pid, names_.text(line.process->comm));
  if (line.op != exit_ || deaths.size() == DEATHS) return;
  auto process = parsed(line.text);
  if (std::int64_t signal = integer_in(process, "signal").value_or(0))
    deaths.push_back({line.pid, signal, line.ts});
}

void Totals::note_slow(Slowest& slowest, const Line& line) {
  const Slow* least = slowest.least();
  if (!line.has(Field::duration) || line.duration <= (least ? least->duration : 0)) return;
  Name what = line.kernel ? line.kernel : line.control ? line.control : line.object_class;
  slowest.add({line.duration, line.ts, line.id, line.pid, line.tid, line.name, what,
               static_cast<bool>(line.kernel)});
}

std::string Totals::what_of(const Slow& slow) const {
  return slow.is_kernel ? kernels_.of(slow.what) : std::string(names_.text(slow.what));
}

void Totals::driver(const Line& line) {
  driver_calls++;
  note_slow(slow_driver_calls_, line);
  add_to(of(groups_, line.op == ioctl_ ? line.group : line.op), line);
  if (line.group != scheduling_) return;
  add_to(of(scheduling_by_command_, line.control ? line.control : line.name), line);
  if (scheduling_times_.size() < MAX_SCHEDULING) scheduling_times_.push_back(line.ts);
  last_scheduling = std::max(last_scheduling, line.ts);
}

void Totals::finish(const TraceFacts&) {
  kernels_.settle();
  slowest = slow_calls_.take();
  slowest_of_driver = slow_driver_calls_.take();
  for (std::uint32_t id = 1; id < type_counts_.size(); id++)
    if (type_counts_[id]) lines_by_type[std::string(names_.text({id}))] = type_counts_[id];
  for (std::uint32_t id = 1; id < name_counts_.size(); id++)
    if (name_counts_[id]) lines_by_name[std::string(names_.text({id}))] = name_counts_[id];
  std::sort(scheduling_times_.begin(), scheduling_times_.end());
  if (!scheduling_times_.empty()) first_scheduling = scheduling_times_.front();
  auto after = std::upper_bound(scheduling_times_.begin(), scheduling_times_.end(), first_launch);
  if (first_launch)
    scheduling_after_launch = static_cast<std::uint64_t>(scheduling_times_.end() - after);
  transfers = named(transfers_);
  waits = named(waits_);
  groups = named(groups_);
  scheduling = named(scheduling_by_command_);
  for (const auto& [key, device] : devices_) devices.push_back(device);
  std::sort(devices.begin(), devices.end(), [](const Device& a, const Device& b) {
    return std::tuple(b.launches, b.copies.count, a.process, a.ordinal) <
           std::tuple(a.launches, a.copies.count, b.process, b.ordinal);
  });
  for (const auto& [key, failure] : failures_) failures.push_back(failure);
  std::sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
    return std::tuple(b.count, a.first_ts, a.name.id, a.error.id) <
           std::tuple(a.count, b.first_ts, b.name.id, b.error.id);
  });
}

Totals::Times& Totals::of(ByName& times, Name name) const {
  bool too_many = !has_room_for(times, name.id, MAX_KINDS);
  return times[too_many ? others_.id : name.id];
}

std::map<std::string, Totals::Times> Totals::named(const ByName& times) const {
  std::map<std::string, Times> named;
  for (const auto& [name, figures] : times) named[std::string(names_.text({name}))] = figures;
  return named;
}

std::vector<std::pair<std::string, Totals::Times>> longest_first(
    const std::map<std::string, Totals::Times>& times) {
  std::vector<std::pair<std::string, Totals::Times>> sorted(times.begin(), times.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(b.second.time, b.second.count) < std::pair(a.second.time, a.second.count);
  });
  return sorted;
}

}  // namespace cudabpf::analyze
