#include "sink/top/top_json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/text/json.hpp"

namespace cudabpf {

namespace {

// A line has a limit, but the number of processes, functions and kernels has none.
constexpr std::size_t MAX_IN_JSON = 64, ROOM_FOR_PARTS = 16 << 10;

std::string json_figures(const TopFigures& figures) {
  std::string copies;
  for (const auto& [op, moved] : figures.copies)
    copies += fmt::format("{}{}:{{\"count\":{},\"bytes\":{}}}", copies.empty() ? "" : ",",
                          json::quoted(to_string(op)), moved.count, moved.bytes);
  return fmt::format(
      "\"calls\":{},\"launches\":{},\"failed\":{},\"time_ns\":{},\"waiting_ns\":{},\"ioctls\":{},"
      "\"copies\":{{{}}}",
      figures.calls, figures.launches, figures.failed, figures.time_ns, figures.waiting_ns,
      figures.driver_calls, copies);
}

std::string json_part(const TopPart& part) {
  return fmt::format("{{\"name\":{},\"calls\":{},\"failed\":{},\"time_ns\":{}}}",
                     json::quoted(part.name), part.calls, part.failed, part.time_ns);
}

// The parts that there is room for, and the sum of the others. Subtracts from the room what they
// take.
std::string json_parts(const std::vector<TopPart>& parts, std::size_t& room) {
  std::string text;
  TopPart others{std::string(TOP_OTHERS)};
  for (const TopPart& part : parts) {
    std::string one = json_part(part);
    if (part.name != TOP_OTHERS && one.size() < room) {
      room -= one.size();
      text += (text.empty() ? "" : ",") + one;
      continue;
    }
    others.calls += part.calls;
    others.failed += part.failed;
    others.time_ns += part.time_ns;
  }
  if (others.calls || others.time_ns || others.failed)
    text += (text.empty() ? "" : ",") + json_part(others);
  return text;
}

// All of them: a machine has few.
std::string json_devices(const TopProcess& process) {
  std::string text;
  for (const auto& [device, memory] : process.devices) {
    text += fmt::format("{}{{\"device\":{},\"held\":{},\"peak\":{}}}", text.empty() ? "" : ",",
                        device == RunMemory::NO_DEVICE ? "null" : std::to_string(device),
                        memory.held, memory.peak);
  }
  return text;
}

// If a process's launches are only counted, its kernels are not known: then it has none.
std::string json_process(const TopProcess& process, std::size_t& room) {
  std::string devices = json_devices(process), functions = json_parts(process.functions, room);
  std::string text = fmt::format(
      "{{\"pid\":{},\"name\":{},\"container\":{},\"pod\":{},\"ended\":{},{},\"calls_in_all\":{},"
      "\"held\":{},\"peak\":{},\"holds_unseen\":{},\"devices\":[{}],\"functions\":[{}]",
      process.pid, json::quoted(process.name), json::quoted(process.container),
      json::quoted(process.pod), process.ended, json_figures(process.figures), process.calls_in_all,
      process.held, process.most_held, process.holds_unseen, devices, functions);
  if (process.has_kernels)
    text += fmt::format(",\"kernels\":[{}]", json_parts(process.kernels, room));
  return text + '}';
}

std::string json_gpus(const TopInterval& interval) {
  std::string text;
  for (const auto& [device, figures] : interval.gpus.gpus()) {
    text += fmt::format("{}{{\"device\":{}", text.empty() ? "" : ",", device);
    auto add = [&](std::string_view key, std::optional<double> value) {
      if (value) text += fmt::format(",\"{}\":{:.1f}", key, *value);
    };
    auto gpu = interval.sampled_gpus.find(device);
    if (gpu != interval.sampled_gpus.end()) {
      text += fmt::format(",\"name\":{}", json::quoted(gpu->second.name));
      if (gpu->second.power > 0) add("power_limit_w", gpu->second.power);
      if (gpu->second.memory > 0) add("memory", gpu->second.memory);
    }
    add("sm_active", figures.sm_active.mean());
    add("utilization", figures.utilization.mean());
    add("power_w", figures.power.mean());
    add("memory_used", figures.most_memory);
    text += '}';
  }
  return text;
}

std::string json_books(const TopInterval::Books& books) {
  const auto& [records, tallied] = books;
  return fmt::format(
      ",\"accounts\":{{\"entered\":{},\"emitted\":{},\"dropped\":{},\"received\":{}}},"
      "\"tallied\":{{\"begun\":{},\"ended\":{},\"under_way\":{},\"dropped\":{}}}",
      records.entered, records.emitted, records.dropped, records.received, tallied.begun,
      tallied.ended, tallied.under_way, tallied.dropped);
}

}  // namespace

std::string top_json(const TopInterval& interval) {
  std::size_t room = ROOM_FOR_PARTS;
  std::string processes;
  std::size_t shown = std::min(interval.processes.size(), MAX_IN_JSON);
  for (std::size_t i = 0; i < shown; i++)
    processes += (i ? "," : "") + json_process(interval.processes[i], room);
  std::string errors;
  for (const TopError& error : interval.errors)
    errors += fmt::format("{}{{\"ts\":{},\"pid\":{},\"name\":{},\"what\":{},\"count\":{}}}",
                          errors.empty() ? "" : ",", error.ts, error.pid, json::quoted(error.name),
                          json::quoted(error.what), error.count);
  std::string lost_why;
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    if (interval.lost.why.test(i))
      lost_why += (lost_why.empty() ? "" : ",") + json::quoted(info(static_cast<Loss>(i)).name);
  return fmt::format(
      "{{\"begin_ns\":{},\"end_ns\":{},{},\"lost\":{},\"lost_uncounted\":{},\"lost_why\":[{}],"
      "\"processes\":[{}],"
      "\"more_processes\":{},\"gpus\":[{}],\"errors\":[{}]{}}}\n",
      interval.begin_ns, interval.end_ns, json_figures(interval.all), interval.lost.events,
      interval.lost.uncounted, lost_why, processes, interval.processes.size() - shown,
      json_gpus(interval), errors, interval.books ? json_books(*interval.books) : "");
}

}  // namespace cudabpf
