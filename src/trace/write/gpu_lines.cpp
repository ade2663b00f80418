#include "trace/write/gpu_lines.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "util/text/json.hpp"

namespace cudabpf {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t NS_IN_MS = 1'000'000;

void add_throttle(std::string& line, std::uint64_t reasons) {
  line += ",\"throttle\":[";
  const char* before = "";
  for (const ThrottleName& throttle : THROTTLES) {
    if (!(reasons & static_cast<std::uint64_t>(throttle.reason))) continue;
    line += fmt::format("{}\"{}\"", before, throttle.name);
    before = ",";
  }
  line += ']';
}

void add_processes(std::string& line, const std::vector<GpuProcess>& processes) {
  line += ",\"processes\":[";
  const char* before = "";
  for (const GpuProcess& process : processes) {
    line += fmt::format("{}{{\"pid\":{}", before, process.pid);
    if (process.memory) line += fmt::format(",\"memory\":{}", *process.memory);
    line += '}';
    before = ",";
  }
  line += ']';
}

void add_residents(std::string& line, const GpuResidents& residents) {
  auto milliseconds = [](std::uint64_t ns) { return static_cast<double>(ns) / NS_IN_MS; };
  line += ",\"residents\":[";
  const char* before = "";
  for (const GpuResident& resident : residents.processes) {
    line += before;
    line += '{';
    if (resident.pid) line += fmt::format("\"pid\":{},", resident.pid);
    line += fmt::format("\"ms\":{:.3f}}}", milliseconds(resident.ns));
    before = ",";
  }
  line += fmt::format("],\"resident_from\":{},\"resident_to\":{},\"resident_unknown_ms\":{:.3f}",
                      residents.from, residents.to, milliseconds(residents.unknown_ns));
}

char* put_field(char* at, std::string_view key, std::uint64_t value) {
  return json::put_number(json::put(at, key), value);
}

char* put_dimensions(char* at, std::string_view key, const Dim3& dim) {
  at = put_field(at, key, dim.x);
  at = put_field(at, ",", dim.y);
  at = put_field(at, ",", dim.z);
  *at++ = ']';
  return at;
}

}  // namespace

std::size_t work_bound(const GpuOperation& work) {
  constexpr std::size_t ALL_BUT_THE_NAME = 640;
  return ALL_BUT_THE_NAME + (work.kernel ? work.kernel->json.size() : 0);
}

char* put_work(char* at, const GpuOperation& work) {
  at = json::put(at, R"({"type":"gpu","op":")");
  at = json::put(at, to_string(work.op));
  at = put_field(at, R"(","ts":)", work.ts);
  at = json::put_microseconds(json::put(at, R"(,"duration_us":)"), work.duration);
  at = put_field(at, R"(,"pid":)", work.pid);
  if (work.call) at = put_field(at, R"(,"call":)", work.call);
  if (work.why_not != Unjoined::none) {
    at = json::put(json::put(at, R"(,"unjoined":")"), to_string(work.why_not));
    *at++ = '"';
  }
  if (work.size) at = put_field(at, R"(,"size":)", *work.size);
  if (work.stream) at = json::put_address(json::put(at, R"(,"stream":)"), *work.stream);
  at = put_field(at, R"(,"queue":)", work.queue);
  if (work.kernel) at = json::put(json::put(at, R"(,"kernel":)"), work.kernel->json);
  if (work.op == GpuOperation::Op::kernel) {
    at = put_dimensions(at, R"(,"grid":[)", work.grid);
    at = put_dimensions(at, R"(,"block":[)", work.block);
    at = put_field(at, R"(,"shared":)", work.shared);
  }
  if (work.device) at = put_field(at, R"(,"device":)", *work.device);
  if (work.direction != Op::none) {
    at = json::put(json::put(at, R"(,"direction":")"), to_string(work.direction));
    *at++ = '"';
  }
  if (work.node) at = put_field(at, R"(,"node":)", *work.node);
  return json::put(at, "}\n");
}

std::string times_line(const GpuTimes& times) {
  Json out = {{"type", "gpu"}, {"op", "times"}, {"ts", times.ts}, {"pid", times.pid}};
  if (!times.version.empty()) out["cupti"] = times.version;
  if (!times.library.empty()) out["path"] = times.library;
  if (times.why_not.empty())
    out["graphs"] = times.whole_graphs ? "whole" : "nodes";
  else
    out["why"] = times.why_not;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string sample_line(const GpuSample& sample) {
  std::string line =
      fmt::format(R"({{"type":"gpu","op":"sample","ts":{},"gpu":{})", sample.ts, sample.device);
  if (sample.window_ns)
    line += fmt::format(",\"window_ms\":{:.1f}", static_cast<double>(*sample.window_ns) / NS_IN_MS);
#define GPU_FIGURE(key, unit, decimals, most, title) \
  if (sample.key) line += fmt::format(",\"" #key "\":{:." #decimals "f}", *sample.key);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  if (sample.throttle) add_throttle(line, *sample.throttle);
  if (sample.processes) add_processes(line, *sample.processes);
  if (sample.residents) add_residents(line, *sample.residents);
  return line + "}\n";
}

}  // namespace cudabpf
