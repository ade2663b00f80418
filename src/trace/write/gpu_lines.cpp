#include "trace/write/gpu_lines.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "util/text/json_writer.hpp"

namespace cudabpf {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t NS_IN_MS = 1'000'000;

void add_throttle(json::Writer& out, std::uint64_t reasons) {
  out.begin_list("throttle");
  for (const ThrottleName& throttle : THROTTLES)
    if (reasons & static_cast<std::uint64_t>(throttle.reason)) out.text_element(throttle.name);
  out.end_list();
}

void add_processes(json::Writer& out, const std::vector<GpuProcess>& processes) {
  out.begin_list("processes");
  for (const GpuProcess& process : processes) {
    out.begin_object();
    out.number("pid", process.pid);
    out.number("memory", process.memory);
    out.end_object();
  }
  out.end_list();
}

void add_residents(json::Writer& out, const GpuResidents& residents) {
  constexpr int DECIMALS = 3;
  auto milliseconds = [](std::uint64_t ns) { return static_cast<double>(ns) / NS_IN_MS; };
  out.begin_list("residents");
  for (const GpuResident& resident : residents.processes) {
    out.begin_object();
    if (resident.pid) out.number("pid", resident.pid);
    out.decimal("ms", milliseconds(resident.ns), DECIMALS);
    out.end_object();
  }
  out.end_list();
  out.number("resident_from", residents.from);
  out.number("resident_to", residents.to);
  out.decimal("resident_unknown_ms", milliseconds(residents.unknown_ns), DECIMALS);
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
  if (times.period_ns && times.why_not.empty()) {
    out["window_ms"] = static_cast<double>(times.window_ns) / NS_IN_MS;
    out["period_ms"] = static_cast<double>(times.period_ns) / NS_IN_MS;
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string window_line(const GpuWindow& window) {
  json::Writer out;
  out.text("type", "gpu");
  out.text("op", "window");
  out.number("ts", window.ts);
  out.microseconds("duration_us", window.duration);
  out.number("pid", window.pid);
  return std::move(out).line();
}

std::string sample_line(const GpuSample& sample) {
  json::Writer out;
  out.text("type", "gpu");
  out.text("op", "sample");
  out.number("ts", sample.ts);
  out.number("gpu", sample.device);
  if (sample.window_ns)
    out.decimal("window_ms", static_cast<double>(*sample.window_ns) / NS_IN_MS, 1);
#define GPU_FIGURE(key, unit, decimals, most, title) out.decimal(#key, sample.key, decimals);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  if (sample.throttle) add_throttle(out, *sample.throttle);
  if (sample.processes) add_processes(out, *sample.processes);
  if (sample.residents) add_residents(out, *sample.residents);
  return std::move(out).line();
}

}  // namespace cudabpf
