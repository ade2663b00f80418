#include "sink/metrics/metrics_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include "cudabpf/abi.h"
#include "util/text/label_value.hpp"

namespace cudabpf {

namespace {

using Labels = MetricsWriter::Labels;
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

void add_calls(MetricsWriter& to, const std::vector<Printed>& workloads) {
  to.family("cudabpf_calls_total", MetricType::counter,
            "Calls of CUDA's driver and of NCCL; launches, copies, waits and queries from their "
            "beginning, others from their end.");
  for_classes(workloads,
              [&](const Labels& labels, const OfClass& of) { to.sample(labels, of.calls); });
  to.family("cudabpf_call_seconds", MetricType::histogram,
            "How long calls took that have returned, on the host, with the calls that they made.");
  for_classes(workloads,
              [&](const Labels& labels, const OfClass& of) { to.histogram(labels, of.times); });
  to.family("cudabpf_failed_calls_total", MetricType::counter, "Calls that failed.");
  for_classes(workloads,
              [&](const Labels& labels, const OfClass& of) { to.sample(labels, of.failed); });
  to.family("cudabpf_call_errors_total", MetricType::counter,
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
    for (const auto& [name, calls] : by_name) to.sample(with(one.labels, "result", name), calls);
  }
  to.family("cudabpf_copy_requested_bytes_total", MetricType::counter,
            "Bytes that calls were to copy, also those that failed. Copies of rows, arrays and "
            "batches, whose size is not one argument, count only where calls are recorded.");
  for_classes(workloads, [&](const Labels& labels, const OfClass& of) {
    if (of.bytes) to.sample(labels, of.bytes);
  });
}

void add_workloads(MetricsWriter& to, const std::vector<Printed>& workloads,
                   const LedgerPage& page) {
  auto each = [&](std::uint64_t WorkloadSums::*member) {
    for (const Printed& one : workloads) to.sample(one.labels, one.sums.*member);
  };
  if (page.open_calls_known) {
    to.family("cudabpf_open_call_seconds", MetricType::gauge,
              "For how long the oldest call that has not returned has been open, at least.");
    for (const Printed& one : workloads)
      to.sample(one.labels, static_cast<double>(one.sums.oldest_open_ns) / SECOND_IN_NS);
  }
  to.family("cudabpf_allocated_bytes", MetricType::gauge,
            "Memory that was allocated by calls that cudabpf has seen, and not freed.");
  each(&WorkloadSums::held);
  to.family("cudabpf_allocated_peak_bytes", MetricType::gauge, "The most of it at any time.");
  each(&WorkloadSums::most_held);
  to.family("cudabpf_processes", MetricType::gauge,
            "Processes that have called CUDA and are alive.");
  each(&WorkloadSums::processes);
  if (!page.driver_traced) return;
  to.family("cudabpf_ioctls_total", MetricType::counter, "Ioctls on the NVIDIA driver's devices.");
  each(&WorkloadSums::ioctls);
}

void add_collectives(MetricsWriter& to, const std::vector<Printed>& all) {
  std::vector<Printed> workloads;
  std::copy_if(all.begin(), all.end(), std::back_inserter(workloads),
               [](const Printed& one) { return !one.sums.collectives.empty(); });
  if (workloads.empty()) return;
  auto each = [&](auto value) {
    for (const Printed& one : workloads)
      for (const auto& [key, of] : one.sums.collectives)
        to.sample(with(with(one.labels, "operation", std::string(to_string(key.first))), "size",
                       COLLECTIVE_SIZES[static_cast<std::size_t>(key.second)].first),
                  value(of));
  };
  to.family("cudabpf_collectives_total", MetricType::counter,
            "Collectives of NCCL that ranks of the workload submitted to GPUs, by operation and by "
            "how much a rank passes at most. Captured ones count at each launch of their graph.");
  each([](const auto& of) { return of.calls; });
  to.family("cudabpf_collective_bytes_total", MetricType::counter,
            "Bytes that its ranks passed to them.");
  each([](const auto& of) { return of.bytes; });
  to.family("cudabpf_collective_call_seconds_total", MetricType::counter,
            "Host time in the calls that asked for them, not that of GPUs.");
  each([](const auto& of) { return static_cast<double>(of.time_ns) / SECOND_IN_NS; });
  to.family(
      "cudabpf_unknown_graph_launches_total", MetricType::counter,
      "Launches of graphs of which it is not known which collectives they hold: these are not "
      "counted.");
  for (const Printed& one : workloads) to.sample(one.labels, one.sums.unknown_graph_launches);
  to.family("cudabpf_rank_behind_seconds", MetricType::gauge,
            "For how long a rank of the workload has not entered a collective, or not launched a "
            "graph of collectives, that another rank on this node has.");
  for (const Printed& one : workloads)
    to.sample(one.labels, static_cast<double>(one.sums.behind_ns) / SECOND_IN_NS);
}

std::string label_of(KernelClass kernel_class) {
  std::string label(to_string(kernel_class));
  for (char& c : label)
    if (c == ' ' || c == '/') c = '_';
  return label;
}

void add_sampled_work(MetricsWriter& to, const std::vector<Printed>& all) {
  std::vector<Printed> workloads;
  std::copy_if(all.begin(), all.end(), std::back_inserter(workloads),
               [](const Printed& one) { return one.sums.work.window_ns > 0; });
  if (workloads.empty()) return;
  auto each_class = [&](auto value) {
    for (const Printed& one : workloads)
      for (std::size_t i = 0; i < KERNEL_CLASSES; i++)
        if (const SampledWork::Kernels& of = one.sums.work.kernels[i]; of.count)
          to.sample(with(one.labels, "kernel_class", label_of(static_cast<KernelClass>(i))),
                    value(of));
  };
  auto each = [&](std::optional<double> (WindowLoads::*value)() const) {
    for (const Printed& one : workloads)
      if (auto known = (one.sums.loads.*value)()) to.sample(one.labels, *known);
  };
  to.family("cudabpf_gpu_window_seconds_total", MetricType::counter,
            "Time in windows, in which kernels of the workload's processes were recorded.");
  for (const Printed& one : workloads)
    to.sample(one.labels, static_cast<double>(one.sums.work.window_ns) / SECOND_IN_NS);
  to.family("cudabpf_gpu_kernel_seconds_total", MetricType::counter,
            "Time on GPUs of kernels that were launched in the windows.");
  each_class([](const SampledWork::Kernels& of) {
    return static_cast<double>(of.time_ns) / SECOND_IN_NS;
  });
  to.family("cudabpf_gpu_kernels_total", MetricType::counter,
            "Kernels that were launched in the windows.");
  each_class([](const SampledWork::Kernels& of) { return of.count; });
  to.family("cudabpf_gpu_load_ratio", MetricType::gauge,
            "Time of kernels by time in windows, in the latest 30 windows: 1 is a GPU that is "
            "always busy.");
  each(&WindowLoads::mean);
  to.family("cudabpf_gpu_load_error_ratio", MetricType::gauge,
            "The standard error of that, as the windows differ.");
  each(&WindowLoads::error);
}

void add_node(MetricsWriter& to, const WorkloadSums& node) {
  to.family("cudabpf_node_calls_total", MetricType::counter,
            "Calls of all workloads, also of those that are gone.");
  for (std::size_t i = 0; i < CALL_CLASSES; i++)
    to.sample(with({}, static_cast<CallClass>(i)), node.classes[i].calls);
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

void add_gpus(MetricsWriter& to, const std::vector<LedgerGpu>& gpus) {
  auto add_figure = [&](std::string_view key, std::string_view unit, std::string_view title,
                        std::optional<double> GpuSample::*member) {
    if (std::none_of(gpus.begin(), gpus.end(),
                     [&](const LedgerGpu& one) { return (one.latest.*member).has_value(); }))
      return;
    GpuFamily family = gpu_family(key, unit);
    to.family(family.name, family.is_counter ? MetricType::counter : MetricType::gauge,
              fmt::format("The GPU's {}, by NVML.", title));
    for (const LedgerGpu& one : gpus)
      if (auto value = one.latest.*member) to.sample(labels_of(one.gpu), *value * family.factor);
  };
#define GPU_FIGURE(key, unit, decimals, most, title) \
  add_figure(#key, #unit, title, &GpuSample::key);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
}

Labels labels_of(const LossInfo& loss) {
  return {{"reason", std::string(loss.name)}, {"severity", loss.degraded ? "degraded" : "lost"}};
}

void add_losses(MetricsWriter& to, const LedgerPage& page) {
  to.family("cudabpf_lost_events_total", MetricType::counter,
            "Events that cudabpf could not count or record (lost), or not in full (degraded).");
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    to.sample(labels_of(info(static_cast<Loss>(i))), page.lost[i]);
  to.family("cudabpf_uncounted_losses_total", MetricType::counter,
            "How often events were lost of which it is not known how many there were.");
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    to.sample(labels_of(info(static_cast<Loss>(i))), page.uncounted[i]);
  to.family("cudabpf_overflow_total", MetricType::counter,
            "What found no room and counts as program=\"(other)\": processes of workloads, and "
            "events of processes.");
  to.sample({{"what", "workloads"}}, page.workloads_refused);
  to.sample({{"what", "events"}}, page.processes_refused);
}

void add_libraries(MetricsWriter& to, const LedgerPage& page) {
  to.family("cudabpf_probed_libraries", MetricType::gauge,
            "Copies of libraries whose functions are traced.");
  for (const auto& [id, counts] : page.libraries)
    to.sample({{"library", std::string(api(id).key)}}, counts.first);
  to.family("cudabpf_unprobed_libraries", MetricType::gauge,
            "Copies of libraries that could not be traced.");
  for (const auto& [id, counts] : page.libraries)
    to.sample({{"library", std::string(api(id).key)}}, counts.second);
}

void add_pushes(MetricsWriter& to, const push::Counts& counts) {
  to.family("cudabpf_pushes_total", MetricType::counter,
            "Pushes of metrics, by what became of them.");
  for (std::size_t i = 0; i < push::OUTCOMES; i++)
    to.sample({{"outcome", std::string(to_string(static_cast<push::Outcome>(i)))}},
              counts.pushes[i]);
  to.family("cudabpf_push_rejected_samples_total", MetricType::counter,
            "Samples that the receiver rejected of pushes that it accepted.");
  to.sample({}, counts.rejected);
}

Labels labels_of(const engines::Sample& sample, const std::string& address) {
  Labels labels{{"engine", std::string(sample.engine)}, {"address", address}};
  for (std::size_t i = 0; i < engines::LABELS.size(); i++)
    if (!sample.labels[i].empty()) labels.emplace_back(engines::LABELS[i], sample.labels[i]);
  return labels;
}

void add_engine_family(MetricsWriter& to, engines::Family family,
                       const std::vector<engines::Heard>& heard) {
  const engines::FamilyInfo& info = engines::info(family);
  to.family(fmt::format("cudabpf_engine_{}", info.name),
            info.is_counter ? MetricType::others_counter : MetricType::gauge, info.help);
  for (const engines::Heard& one : heard)
    for (const engines::Sample& sample : one.figures.samples)
      if (sample.family == family) to.sample(labels_of(sample, one.address), sample.value);
}

void add_engines(MetricsWriter& to, const std::vector<engines::Heard>& heard) {
  to.family("cudabpf_engine_up", MetricType::gauge,
            "Whether the engine has shown its metrics when it was asked last.");
  for (const engines::Heard& one : heard)
    to.sample({{"address", one.address}}, std::uint64_t{one.is_up});
  to.family("cudabpf_engine_left_out_samples", MetricType::gauge,
            "Samples that it showed then, and that could not be read or found no room.");
  for (const engines::Heard& one : heard)
    to.sample({{"address", one.address}}, std::uint64_t{one.figures.left_out});
  for (std::size_t i = 0; i < engines::FAMILIES; i++)
    add_engine_family(to, static_cast<engines::Family>(i), heard);
}

void add_own(MetricsWriter& to, const OwnFigures& own) {
  to.family("cudabpf_build_info", MetricType::gauge, "The version of cudabpf.");
  to.sample({{"version", own.version}}, std::uint64_t{1});
  to.family("process_cpu_seconds_total", MetricType::counter, "CPU time that cudabpf has used.");
  to.sample({}, own.cpu_seconds);
  to.family("process_resident_memory_bytes", MetricType::gauge, "Memory that cudabpf has.");
  to.sample({}, own.memory);
  to.family("process_start_time_seconds", MetricType::gauge, "When cudabpf began, since 1970.");
  to.sample({}, static_cast<double>(own.start_ns) / SECOND_IN_NS);
}

}  // namespace

void print(const MetricsPage& page, MetricsWriter& to) {
  const LedgerPage& sums = page.sums;
  std::vector<Printed> workloads = printed(sums.workloads);
  add_calls(to, workloads);
  add_workloads(to, workloads, sums);
  add_collectives(to, workloads);
  add_sampled_work(to, workloads);
  add_node(to, sums.node);
  to.family("cudabpf_gpu_xid_errors_total", MetricType::counter,
            "Errors of GPUs, by the driver's number.");
  for (const auto& [key, count] : sums.xids)
    to.sample({{"xid", fmt::format("{}", key.first)}, {"pci_bus_id", label_value(key.second)}},
              count);
  add_gpus(to, sums.gpus);
  add_losses(to, sums);
  add_libraries(to, sums);
  if (!page.engines.empty()) add_engines(to, page.engines);
  if (page.pushes) add_pushes(to, *page.pushes);
  add_own(to, page.own);
}

}  // namespace cudabpf
