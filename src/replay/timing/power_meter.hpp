// The GPU's own meter, read by NVML: the energy that all of it has used, and how it is clocked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collect/gpu/gpu_reader.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/messages.hpp"
#include "replay/progress.hpp"

namespace cudabpf::replay {

class PowerMeter {
 public:
  static Result<std::unique_ptr<PowerMeter>> open(const Driver& driver, int device);
  PowerMeter(const PowerMeter&) = delete;
  PowerMeter& operator=(const PowerMeter&) = delete;
  ~PowerMeter();

  // Now. Nothing: the GPU does not say.
  std::optional<Clocks> clocks();
  // What is used while `work` is done, over and over: it gives the GPU some milliseconds of work.
  // The counter steps about ten times a second: the window begins and ends at a step. Nothing: the
  // counter cannot be read, see fault(). An error: that of the work.
  Result<std::optional<Energy>> measure(const std::function<Result<>()>& work,
                                        std::uint32_t window_ms, Progress& progress);
  const std::string& fault() const { return fault_; }

 private:
  explicit PowerMeter(const nvml::Functions& nvml) : nvml_(nvml) {}
  std::optional<std::uint64_t> millijoules();
  // Works until the counter steps.
  Result<std::optional<std::uint64_t>> next_step(const std::function<Result<>()>& work);

  nvml::Functions nvml_;
  nvml::Device device_ = nullptr;
  std::unique_ptr<GpuReader> reader_;
  std::string fault_;
};

}  // namespace cudabpf::replay
