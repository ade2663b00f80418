// Reads the state of one GPU, by NVML.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collect/gpu/nvml.hpp"
#include "cudabpf/sink.hpp"

namespace cudabpf {

class GpuReader {
 public:
  // What to read besides power, clocks and throttling, which are quick.
  struct What {
    bool activity = false;
    bool slow = false;    // temperature, memory, processes
    bool energy = false;  // takes milliseconds
  };
  struct Failures {
    std::uint64_t count = 0;
    std::string last;  // in words
  };

  // Finds out by trying what the GPU reports.
  static Result<std::unique_ptr<GpuReader>> open(const nvml::Functions& nvml, unsigned index);
  ~GpuReader();
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;

  const SampledGpu& gpu() const { return gpu_; }
  // `ts` is now.
  GpuSample read(std::uint64_t ts, What what);
  // It has fallen off the bus: nothing can be read any more.
  bool is_lost() const { return lost_; }
  // Readings that failed since the last call. A figure that the GPU never reported is no failure.
  Failures take_failures();

 private:
  enum class Reading : std::uint8_t {
    power,
    sm_clock,
    mem_clock,
    throttle,
    activity,
    utilization,
    energy,
    temperature,
    memory,
    processes,
    count_
  };
  static constexpr std::size_t READINGS = static_cast<std::size_t>(Reading::count_);
  struct Metric {
    unsigned id;
    const char* name;
    std::optional<double> GpuSample::*figure;
    double scale;  // of NVML's unit
    double most;
  };

  GpuReader(const nvml::Functions& nvml, nvml::Device device) : nvml_(nvml), device_(device) {}
  void describe(unsigned index);
  void choose_activity();
  void try_metrics();
  void try_all();

  bool wants(Reading reading) const { return !lacks_[static_cast<std::size_t>(reading)]; }
  bool succeeded(Reading reading, nvml::Return result);
  void failed(std::string what);
  void set(std::optional<double>& figure, double value, double most, std::string_view name);

  void read_power(GpuSample& to);
  void read_clocks(GpuSample& to);
  void read_throttle(GpuSample& to);
  void read_activity(GpuSample& to);
  nvml::Return get_metrics();
  void read_metrics(GpuSample& to);
  void read_utilization(GpuSample& to);
  void read_energy(GpuSample& to);
  void read_slow(GpuSample& to);
  void read_memory(GpuSample& to);
  void read_processes(GpuSample& to);

  const nvml::Functions& nvml_;
  nvml::Device device_;
  SampledGpu gpu_;
  bool instant_power_ = false;
  bool trying_ = false;  // a reading that fails now is one that the GPU does not report
  bool lost_ = false;
  std::bitset<READINGS> lacks_;
  std::vector<Metric> metrics_;                // those that the GPU reports
  bool metrics_known_ = false;                 // a whole window has shown which these are
  std::array<nvml::GpmSample, 2> counters_{};  // the previous ones, and the current ones
  std::uint64_t counted_at_ = 0;
  bool counted_ = false;  // there are previous ones
  std::unique_ptr<nvml::GpmMetricsGet> metrics_get_;
  Failures failures_;
};

}  // namespace cudabpf
