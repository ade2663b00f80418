#include "sink/metrics/metrics_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "cudabpf/abi.h"
#include "sink/metrics/metrics_text.hpp"

namespace cudabpf {

namespace {

using Labels = MetricsText::Labels;
using OfClass = WorkloadSums::OfClass;

constexpr double SECOND_IN_NS = 1e9;

// Those of Kubernetes also where they are empty: a scraper that adds the target's own would put
// them in their place.
Labels labels_of(const Workload& workload) {
  Labels labels{
      {"namespace", workload.name_space}, {"pod", workload.pod}, {"container", workload.container}};
  if (!workload.unit.empty()) labels.emplace_back("unit", workload.unit);
  if (!workload.slurm_job.empty()) labels.emplace_back("slurm_job", workload.slurm_job);
  labels.emplace_back("program", workload.program);
  return labels;
}

Labels with(Labels labels, std::string_view name, std::string value) {
  labels.emplace_back(name, std::move(value));
  return labels;
}

Labels with(const Labels& labels, CallClass which) {
  return with(labels, "function_class", std::string(to_string(which)));
}

struct Printed {
  Labels labels;
  const WorkloadSums& sums;
};

std::vector<Printed> printed(const std::vector<WorkloadSums>& workloads) {
  std::vector<Printed> printed;
  printed.reserve(workloads.size());
  for (const WorkloadSums& one : workloads) printed.push_back({labels_of(one.workload), one});
  return printed;
}

// A value for each class that a workload has called.
void for_classes(const std::vector<Printed>& workloads,
                 const std::function<void(const Labels&, const OfClass&)>& print) {
  for (const Printed& one : workloads)
    for (std::size_t i = 0; i < CALL_CLASSES; i++)
      if (one.sums.classes[i].calls)
        print(with(one.labels, static_cast<CallClass>(i)), one.sums.classes[i]);
}

void add_times(MetricsText& text, const Labels& labels, const Times& times) {
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i <= TIME_LIMITS; i++) {
    calls += times.calls[i];
    std::string limit =
        i < TIME_LIMITS ? fmt::format("{}", static_cast<double>(TIME_LIMITS_NS[i]) / SECOND_IN_NS)
                        : "+Inf";
    text.sample("_bucket", with(labels, "le", std::move(limit)), calls);
  }
  text.sample("_sum", labels, static_cast<double>(times.time_ns) / SECOND_IN_NS);
  text.sample("_count", labels, calls);
}

void add_calls(MetricsText& text, const std::vector<Printed>& workloads) {
  text.family("cudabpf_calls_total", "counter",
              "Calls of CUDA's driver and of NCCL; launches, copies, waits and queries from their "
              "beginning, others from their end.");
  for_classes(workloads,
              [&](const Labels& labels, const OfClass& of) { text.sample(labels, of.calls); });
  text.family(
      "cudabpf_call_seconds", "histogram",
      "How long calls took that have returned, on the host, with the calls that they made.");
  for_classes(workloads,
              [&](const Labels& labels, const OfClass& of) { add_times(text, labels, of.times); });
  text.family("cudabpf_failed_calls_total", "counter", "Calls that failed.");
  for_classes(workloads,
              [&](const Labels& labels, const OfClass& of) { text.sample(labels, of.failed); });
  text.family("cudabpf_call_errors_total", "counter",
              "Calls that failed, by what they returned. Rare results may be missing where there "
              "are many: cudabpf_failed_calls_total has all.");
  for (const Printed& one : workloads) {
    std::map<std::string, std::uint64_t> by_name;
    for (const auto& [key, calls] : one.sums.errors) {
      std::string_view name = result_name(key.first, key.second);
      bool is_other = key.second == static_cast<int>(CB_OTHER_RESULT);
      by_name[is_other       ? std::string(OTHER_WORKLOADS)
              : name.empty() ? fmt::format("{}", key.second)
                             : std::string(name)] += calls;
    }
    for (const auto& [name, calls] : by_name) text.sample(with(one.labels, "result", name), calls);
  }
  text.family("cudabpf_copy_requested_bytes_total", "counter",
              "Bytes that calls were to copy, also those that failed. Copies of rows, arrays and "
              "batches, whose size is not one argument, count only where calls are recorded.");
  for_classes(workloads, [&](const Labels& labels, const OfClass& of) {
    if (of.bytes) text.sample(labels, of.bytes);
  });
}

void add_workloads(MetricsText& text, const std::vector<Printed>& workloads,
                   const LedgerPage& page) {
  auto each = [&](std::uint64_t WorkloadSums::*member) {
    for (const Printed& one : workloads) text.sample(one.labels, one.sums.*member);
  };
  if (page.counted_in_kernel) {
    text.family("cudabpf_open_call_seconds", "gauge",
                "For how long the oldest launch, copy, wait or query that has not returned has "
                "been open, at least.");
    for (const Printed& one : workloads)
      text.sample(one.labels, static_cast<double>(one.sums.oldest_open_ns) / SECOND_IN_NS);
  }
  text.family("cudabpf_allocated_bytes", "gauge",
              "Memory that was allocated by calls that cudabpf has seen, and not freed.");
  each(&WorkloadSums::held);
  text.family("cudabpf_allocated_peak_bytes", "gauge", "The most of it at any time.");
  each(&WorkloadSums::most_held);
  text.family("cudabpf_processes", "gauge", "Processes that have called CUDA and are alive.");
  each(&WorkloadSums::processes);
  if (!page.driver_traced) return;
  text.family("cudabpf_ioctls_total", "counter", "Ioctls on the NVIDIA driver's devices.");
  each(&WorkloadSums::ioctls);
}

void add_node(MetricsText& text, const WorkloadSums& node) {
  text.family("cudabpf_node_calls_total", "counter",
              "Calls of all workloads, also of those that are gone.");
  for (std::size_t i = 0; i < CALL_CLASSES; i++)
    text.sample(with({}, static_cast<CallClass>(i)), node.classes[i].calls);
}

struct GpuFamily {
  std::string name;
  double factor;
  bool is_counter;
};

// Base units, as Prometheus has them: "power_w" is "cudabpf_gpu_power_watts".
GpuFamily gpu_family(std::string_view key, std::string_view unit) {
  struct Base {
    std::string_view unit, suffix_of_key, name;
    double factor;
    bool is_counter;
  };
  static constexpr Base BASES[] = {
      {"percent", "", "_ratio", 0.01, false},
      {"bytes_per_second", "", "_bytes_per_second", 1, false},
      {"watts", "_w", "_watts", 1, false},
      {"joules", "_j", "_joules_total", 1, true},
      {"megahertz", "_mhz", "_hertz", 1e6, false},
      {"celsius", "_c", "_celsius", 1, false},
      {"bytes", "", "_bytes", 1, false},
  };
  for (const Base& base : BASES) {
    if (base.unit != unit) continue;
    key.remove_suffix(base.suffix_of_key.size());
    return {fmt::format("cudabpf_gpu_{}{}", key, base.name), base.factor, base.is_counter};
  }
  return {fmt::format("cudabpf_gpu_{}", key), 1, false};
}

Labels labels_of(const SampledGpu& gpu) {
  return {{"gpu", fmt::format("{}", gpu.device)},
          {"gpu_uuid", label_value(gpu.uuid)},
          {"model", label_value(gpu.name)}};
}

void add_gpus(MetricsText& text, const std::vector<LedgerGpu>& gpus) {
  auto add_figure = [&](std::string_view key, std::string_view unit, std::string_view title,
                        std::optional<double> GpuSample::*member) {
    if (std::none_of(gpus.begin(), gpus.end(),
                     [&](const LedgerGpu& one) { return (one.latest.*member).has_value(); }))
      return;
    GpuFamily family = gpu_family(key, unit);
    text.family(family.name, family.is_counter ? "counter" : "gauge",
                fmt::format("The GPU's {}, by NVML.", title));
    for (const LedgerGpu& one : gpus)
      if (auto value = one.latest.*member) text.sample(labels_of(one.gpu), *value * family.factor);
  };
#define GPU_FIGURE(key, unit, decimals, most, title) \
  add_figure(#key, #unit, title, &GpuSample::key);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
}

Labels labels_of(const LossInfo& loss) {
  return {{"reason", std::string(loss.name)}, {"severity", loss.degraded ? "degraded" : "lost"}};
}

void add_losses(MetricsText& text, const LedgerPage& page) {
  text.family("cudabpf_lost_events_total", "counter",
              "Events that cudabpf could not count or record (lost), or not in full (degraded).");
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    text.sample(labels_of(info(static_cast<Loss>(i))), page.lost[i]);
  text.family("cudabpf_uncounted_losses_total", "counter",
              "How often events were lost of which it is not known how many there were.");
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    text.sample(labels_of(info(static_cast<Loss>(i))), page.uncounted[i]);
  text.family("cudabpf_overflow_total", "counter",
              "What found no room and counts as program=\"(other)\": processes of workloads, and "
              "events of processes.");
  text.sample({{"what", "workloads"}}, page.workloads_refused);
  text.sample({{"what", "events"}}, page.processes_refused);
}

void add_own(MetricsText& text, const LedgerPage& page, const OwnFigures& own) {
  text.family("cudabpf_probed_libraries", "gauge",
              "Copies of libraries whose functions are traced.");
  for (const auto& [id, counts] : page.libraries)
    text.sample({{"library", std::string(api(id).key)}}, counts.first);
  text.family("cudabpf_unprobed_libraries", "gauge",
              "Copies of libraries that could not be traced.");
  for (const auto& [id, counts] : page.libraries)
    text.sample({{"library", std::string(api(id).key)}}, counts.second);
  text.family("cudabpf_build_info", "gauge", "The version of cudabpf.");
  text.sample({{"version", own.version}}, std::uint64_t{1});
  text.family("process_cpu_seconds_total", "counter", "CPU time that cudabpf has used.");
  text.sample({}, own.cpu_seconds);
  text.family("process_resident_memory_bytes", "gauge", "Memory that cudabpf has.");
  text.sample({}, own.memory);
  text.family("process_start_time_seconds", "gauge", "When cudabpf began, since 1970.");
  text.sample({}, own.start_seconds);
}

}  // namespace

std::string metrics_page(const LedgerPage& page, const OwnFigures& own) {
  MetricsText text;
  std::vector<Printed> workloads = printed(page.workloads);
  add_calls(text, workloads);
  add_workloads(text, workloads, page);
  add_node(text, page.node);
  text.family("cudabpf_gpu_xid_errors_total", "counter", "Errors of GPUs, by the driver's number.");
  for (const auto& [key, count] : page.xids)
    text.sample({{"xid", fmt::format("{}", key.first)}, {"pci_bus_id", label_value(key.second)}},
                count);
  add_gpus(text, page.gpus);
  add_losses(text, page);
  add_own(text, page, own);
  return text.take();
}

}  // namespace cudabpf
