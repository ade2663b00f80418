// What samples of a machine's GPUs say of a run as a whole: how busy, how hot, how much.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cudabpf/event.hpp"
#include "state/gpu_residence.hpp"
#include "util/page/page.hpp"

namespace cudabpf {

// The mean over time of something that is known for some stretches of it.
class MeanOverTime {
 public:
  void add(double value, double over) {
    sum_ += value * over;
    over_ += over;
  }
  std::optional<double> mean() const {
    return over_ > 0 ? std::optional(sum_ / over_) : std::nullopt;
  }

 private:
  double sum_ = 0, over_ = 0;
};

// A reading of the energy counter.
struct EnergyReading {
  std::uint64_t ts = 0;
  double joules = 0;
};

struct GpuFigures {
  std::uint32_t device = 0;
  std::uint64_t samples = 0;
  MeanOverTime sm_active, utilization, power;
  std::optional<double> most_power, most_memory, most_temperature;
  std::optional<EnergyReading> first_energy, last_energy;
  bool counter_went_back = false;  // the GPU was reset, or what is read is not a counter
  std::uint64_t throttle_read = 0, throttled = 0;
  GpuResidence residence;

  void add(const GpuSample& sample);
  // Joules between the first and the last reading; nothing: there are no two, or they show nothing.
  std::optional<double> energy() const;
};

class GpusFigures {
 public:
  void add(const GpuSample& sample);
  void named(std::uint32_t pid, std::string_view comm);
  const std::map<std::uint32_t, GpuFigures>& gpus() const { return gpus_; }
  // Empty: it is not known.
  std::string_view name_of(std::uint32_t pid) const;

 private:
  static constexpr std::size_t MAX_GPUS = 256;  // a trace may name any number
  static constexpr std::size_t MAX_NAMES = 4096;
  std::map<std::uint32_t, GpuFigures> gpus_;
  std::map<std::uint32_t, std::string> names_;  // of processes, by pid
};

// A bit of Throttle is set: the GPU is slower than it could be.
bool is_throttled(std::uint64_t reasons);
// A table of at most this many GPUs; nothing if there are none.
void add_gpus(Page& page, const GpusFigures& figures, std::size_t at_most);
// A table of the processes that had those GPUs. `why_not`: why that is not recorded although it was
// wanted; else empty.
void add_residence(Page& page, const GpusFigures& figures, std::size_t at_most,
                   const std::string& why_not);

}  // namespace cudabpf
