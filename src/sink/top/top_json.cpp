#include "sink/top/top_json.hpp"

#include <algorithm>

#include "util/text/json_writer.hpp"

namespace cudabpf {

namespace {

// A line has a limit, but the number of processes, functions and kernels has none.
constexpr std::size_t MAX_IN_JSON = 64, ROOM_FOR_PARTS = 16 << 10;

void add_figures(json::Writer& out, const TopFigures& figures) {
  out.number("calls", figures.calls);
  out.number("launches", figures.launches);
  out.number("failed", figures.failed);
  out.number("time_ns", figures.time_ns);
  out.number("waiting_ns", figures.waiting_ns);
  out.number("ioctls", figures.driver_calls);
  out.begin_object("copies");
  for (const auto& [op, moved] : figures.copies) {
    out.begin_object(to_string(op));
    out.number("count", moved.count);
    out.number("bytes", moved.bytes);
    out.end_object();
  }
  out.end_object();
}

std::string part_object(const TopPart& part) {
  json::Writer out;
  out.text("name", part.name);
  out.number("calls", part.calls);
  out.number("failed", part.failed);
  out.number("time_ns", part.time_ns);
  return std::move(out).object();
}

// The parts that there is room for, and the sum of the others. Subtracts from the room what they
// take.
void add_parts(json::Writer& out, std::string_view key, const std::vector<TopPart>& parts,
               std::size_t& room) {
  TopPart others{std::string(TOP_OTHERS)};
  out.begin_list(key);
  for (const TopPart& part : parts) {
    std::string one = part_object(part);
    if (part.name != TOP_OTHERS && one.size() < room) {
      room -= one.size();
      out.element(one);
      continue;
    }
    others.calls += part.calls;
    others.failed += part.failed;
    others.time_ns += part.time_ns;
  }
  if (others.calls || others.time_ns || others.failed) out.element(part_object(others));
  out.end_list();
}

// All of them: a machine has few.
void add_devices(json::Writer& out, const TopProcess& process) {
  out.begin_list("devices");
  for (const auto& [device, memory] : process.devices) {
    out.begin_object();
    if (device == RunMemory::NO_DEVICE)
      out.null("device");
    else
      out.number("device", device);
    out.number("held", memory.held);
    out.number("peak", memory.peak);
    out.end_object();
  }
  out.end_list();
}

// If a process's launches are only counted, its kernels are not known: then it has none.
void add_process(json::Writer& out, const TopProcess& process, std::size_t& room) {
  out.begin_object();
  out.number("pid", process.pid);
  out.text("name", process.name);
  out.text("container", process.container);
  out.text("pod", process.pod);
  out.boolean("ended", process.ended);
  add_figures(out, process.figures);
  out.number("calls_in_all", process.calls_in_all);
  out.number("held", process.held);
  out.number("peak", process.most_held);
  out.boolean("holds_unseen", process.holds_unseen);
  add_devices(out, process);
  add_parts(out, "functions", process.functions, room);
  if (process.has_kernels) add_parts(out, "kernels", process.kernels, room);
  out.end_object();
}

void add_gpus(json::Writer& out, const TopInterval& interval) {
  out.begin_list("gpus");
  for (const auto& [device, figures] : interval.gpus.gpus()) {
    out.begin_object();
    out.number("device", device);
    auto gpu = interval.sampled_gpus.find(device);
    if (gpu != interval.sampled_gpus.end()) {
      out.text("name", gpu->second.name);
      if (gpu->second.power > 0) out.decimal("power_limit_w", gpu->second.power, 1);
      if (gpu->second.memory > 0) out.decimal("memory", gpu->second.memory, 1);
    }
    out.decimal("sm_active", figures.sm_active.mean(), 1);
    out.decimal("utilization", figures.utilization.mean(), 1);
    out.decimal("power_w", figures.power.mean(), 1);
    out.decimal("memory_used", figures.most_memory, 1);
    out.end_object();
  }
  out.end_list();
}

void add_errors(json::Writer& out, const TopInterval& interval) {
  out.begin_list("errors");
  for (const TopError& error : interval.errors) {
    out.begin_object();
    out.number("ts", error.ts);
    out.number("pid", error.pid);
    out.text("name", error.name);
    out.text("what", error.what);
    out.number("count", error.count);
    out.end_object();
  }
  out.end_list();
}

void add_books(json::Writer& out, const TopInterval::Books& books) {
  const auto& [records, tallied] = books;
  out.begin_object("accounts");
  out.number("entered", records.entered);
  out.number("emitted", records.emitted);
  out.number("dropped", records.dropped);
  out.number("received", records.received);
  out.end_object();
  out.begin_object("tallied");
  out.number("begun", tallied.begun);
  out.number("ended", tallied.ended);
  out.number("under_way", tallied.under_way);
  out.number("dropped", tallied.dropped);
  out.end_object();
}

}  // namespace

std::string top_json(const TopInterval& interval) {
  std::size_t room = ROOM_FOR_PARTS, shown = std::min(interval.processes.size(), MAX_IN_JSON);
  json::Writer out;
  out.number("begin_ns", interval.begin_ns);
  out.number("end_ns", interval.end_ns);
  add_figures(out, interval.all);
  out.number("lost", interval.lost.events);
  out.boolean("lost_uncounted", interval.lost.uncounted);
  out.begin_list("lost_why");
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    if (interval.lost.why.test(i)) out.text_element(info(static_cast<Loss>(i)).name);
  out.end_list();
  out.begin_list("processes");
  for (std::size_t i = 0; i < shown; i++) add_process(out, interval.processes[i], room);
  out.end_list();
  out.number("more_processes", interval.processes.size() - shown);
  add_gpus(out, interval);
  add_errors(out, interval);
  if (interval.books) add_books(out, *interval.books);
  return std::move(out).line();
}

}  // namespace cudabpf
