#include <map>
#include <nlohmann/json.hpp>

#include "analyze/summary/summary.hpp"
#include "state/error_meanings.hpp"

namespace cudabpf::analyze {

namespace {

Json by_name_json(const std::map<std::string, Totals::Times>& times) {
  Json json = Json::object();
  for (const auto& [name, one] : longest_first(times)) {
    json[name] = {{"count", one.count}, {"time_us", microseconds(one.time)}};
    if (one.bytes) json[name]["bytes"] = one.bytes;
    if (one.failed) json[name]["failed"] = one.failed;
  }
  return json;
}

Json slowest_json(const std::vector<Slow>& slowest, const Names& names) {
  Json json = Json::array();
  for (const Slow& slow : slowest) {
    Json one = {{"name", names.text(slow.name)},
                {"duration_us", microseconds(slow.duration)},
                {"ts", slow.ts},
                {"pid", slow.pid},
                {"tid", slow.tid}};
    if (slow.id) one["id"] = slow.id;
    if (slow.what) one["what"] = names.text(slow.what);
    json.push_back(std::move(one));
  }
  return json;
}

Json residence_json(const GpusFigures& gpus, const GpuResidence& residence) {
  Json processes = Json::array();
  for (auto [pid, ns] : residence.processes()) {
    Json one = {{"time_us", microseconds(ns)}};
    if (pid) one["pid"] = pid;
    if (pid && !gpus.name_of(pid).empty()) one["comm"] = gpus.name_of(pid);
    processes.push_back(std::move(one));
  }
  return {{"time_us", microseconds(residence.time())},
          {"unknown_us", microseconds(residence.unknown())},
          {"nobody_us", microseconds(residence.no_process())},
          {"processes", processes}};
}

Json gpus_json(const GpusFigures& gpus) {
  Json json = Json::array();
  for (const auto& [device, figures] : gpus.gpus()) {
    Json one = {{"device", device}, {"samples", figures.samples}};
    auto set = [&](const char* key, const std::optional<double>& value) {
      if (value) one[key] = *value;
    };
    set("sm_active", figures.sm_active.mean());
    set("utilization", figures.utilization.mean());
    set("power_w", figures.power.mean());
    set("most_power_w", figures.most_power);
    set("energy_j", figures.energy());
    if (figures.energy())
      one["energy_window_us"] = {microseconds(figures.first_energy->ts),
                                 microseconds(figures.last_energy->ts)};
    set("most_memory", figures.most_memory);
    set("most_temperature_c", figures.most_temperature);
    if (figures.throttle_read) {
      one["throttle_read"] = figures.throttle_read;
      one["throttled"] = figures.throttled;
    }
    if (figures.residence.is_known()) one["residence"] = residence_json(gpus, figures.residence);
    json.push_back(std::move(one));
  }
  return json;
}

Json devices_json(const std::vector<Totals::Device>& devices) {
  Json json = Json::array();
  for (const Totals::Device& device : devices)
    json.push_back({{"pid", device.pid},
                    {"device", device.ordinal},
                    {"launches", device.launches},
                    {"copies", device.copies.count},
                    {"copied_bytes", device.copies.bytes},
                    {"copying_us", microseconds(device.copies.time)},
                    {"waits", device.waits.count},
                    {"waiting_us", microseconds(device.waits.time)}});
  return json;
}

Json errors_json(const std::vector<Totals::Failure>& failures, const Names& names) {
  Json json = Json::array();
  for (const Totals::Failure& failure : failures)
    json.push_back({{"name", names.text(failure.name)},
                    {"error", names.text(failure.error)},
                    {"benign", is_usual(names.text(failure.name), names.text(failure.error))},
                    {"count", failure.count},
                    {"first_ts", failure.first_ts}});
  return json;
}

}  // namespace

Json Summary::iterations_json() const {
  const Iterations& iterations = execution_.iterations();
  if (iterations.found == Iterations::Found::none) return nullptr;
  const Durations& times = iterations.times;
  Json json = {{"found", iterations.found == Iterations::Found::between_waits ? "between_waits"
                                                                              : "within_a_wait"},
               {"count", iterations.count},
               {"warm_up", iterations.warm_up},
               {"in_part", iterations.in_part},
               {"pauses", iterations.pauses},
               {"launches", iterations.launches},
               {"fewest_launches", iterations.fewest},
               {"most_launches", iterations.most},
               {"begin_us", microseconds(iterations.begin)},
               {"warm_us", microseconds(iterations.warm)},
               {"end_us", microseconds(iterations.end)},
               {"timed", times.count()},
               {"typical",
                {{"begin_us", microseconds(iterations.typical.begin)},
                 {"end_us", microseconds(iterations.typical.end)},
                 {"first_call", iterations.typical.first_call}}}};
  if (double rate = stretch_.per_second(); rate > 0) json["per_second"] = rate;
  // Else there were more than are known.
  if (!totals_.graphs().unknown()) json["kernels"] = iterations.kernels;
  if (times.count()) {
    json["mean_us"] = microseconds(times.mean());
    json["p50_us"] = microseconds(iterations.time_at(0.5));
    json["p99_us"] = microseconds(iterations.time_at(0.99));
    json["in_calls_us"] = microseconds(iterations.spent.in_calls);
    json["waiting_us"] = microseconds(iterations.spent.waiting);
  }
  return json;
}

Json Summary::json() const {
  Json summary = {{"verdict", verdict_json(verdict_)},
                  {"calls", totals_.calls},
                  {"unfinished", totals_.unfinished},
                  {"shown", shown_json()},
                  {"processes", processes_json()},
                  {"other_processes", other_processes_json()},
                  {"devices", devices_json(totals_.devices)},
                  {"threads_put_away", execution_.threads().put_away()},
                  {"duration_us", microseconds(duration_)},
                  {"lines_by_type", totals_.lines_by_type},
                  {"lines_by_name", totals_.lines_by_name},
                  {"launches", totals_.launches},
                  {"nested_launches", totals_.nested_launches},
                  {"recorded_launches", totals_.recorded_launches},
                  {"graph_launches", totals_.graph_launches},
                  {"launched", totals_.launched()},
                  {"unknown_graph_launches", unknown_graphs_json(totals_.graphs())},
                  {"kernel_runs", totals_.kernel_runs()},
                  {"kernel_runs_in_graphs", totals_.graphs().kernels()},
                  {"launching_us", microseconds(totals_.launching.time)},
                  {"allocations",
                   {{"count", totals_.allocations.count},
                    {"bytes", totals_.allocations.bytes},
                    {"failed", totals_.allocations.failed}}},
                  {"transfers", by_name_json(totals_.transfers)},
                  {"waits", by_name_json(totals_.waits)},
                  {"loading_calls", execution_.phases().loading_calls},
                  {"iterations", iterations_json()},
                  {"phases", phases_json(execution_.phases())},
                  {"steps", steps_json(steps_, names_)},
                  {"gaps", idle_json(execution_.idle(), Judged::GAPS)},
                  {"inference_idle",
                   {{"time_us", microseconds(inference_time())},
                    {"idle_us", microseconds(inference_idle())},
                    {"share", share(inference_idle(), inference_time())}}},
                  {"memory", memory_json(memory_)},
                  {"driver_calls", totals_.driver_calls},
                  {"driver_groups", by_name_json(totals_.groups)},
                  {"scheduling", by_name_json(totals_.scheduling)},
                  {"scheduling_after_first_launch", totals_.scheduling_after_launch},
                  {"slowest", slowest_json(totals_.slowest, names_)},
                  {"slowest_of_driver", slowest_json(totals_.slowest_of_driver, names_)},
                  {"errors", errors_json(totals_.failures, names_)},
                  {"gpu_errors", totals_.xids}};
  if (execution_.gpus().any()) {
    summary["measured"] = gpus_at_work_json(execution_.gpus(), Judged::GAPS);
    summary["measured"]["work"] = measured_execution_json(measured_, names_);
  }
  if (!ranges_.rows().empty()) summary["ranges"] = outermost_ranges_json(ranges_);
  if (execution_.thread())
    summary["thread"] = {{"pid", execution_.thread()->pid}, {"tid", execution_.thread()->tid}};
  if (!totals_.gpus.gpus().empty()) summary["gpus"] = gpus_json(totals_.gpus);
  return {{"summary", summary}};
}

}  // namespace cudabpf::analyze
