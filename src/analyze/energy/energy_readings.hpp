// How much energy a GPU used, by readings of its counter. The counter steps about ten times a
// second and is read every one to ten seconds: a difference of two readings is exact to one step at
// each end, and shows nothing shorter than a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf::analyze {

struct EnergyUsed {
  std::uint64_t from = 0, to = 0;  // the first and the last reading in the wanted time
  double joules = 0;
  double error = 0;     // joules, more or less
  std::string why_not;  // it is not known; empty: it is

  bool known() const { return why_not.empty(); }
  double seconds() const { return static_cast<double>(to - from) / 1e9; }
  double watts() const { return joules / seconds(); }
};

class EnergyReadings {
 public:
  static constexpr double STEP_SECONDS = 0.1;
  static constexpr double SHORTEST_SECONDS = 1;

  void add(std::uint64_t ts, double joules);
  EnergyUsed between(std::uint64_t from, std::uint64_t to) const;

 private:
  struct Reading {
    std::uint64_t ts;
    double joules;
  };
  // When there are as many, every second reading is dropped.
  static constexpr std::size_t MAX = 1 << 16, MAX_FALLS = 1 << 10;

  void thin_out();

  std::vector<Reading> readings_;
  std::optional<Reading> last_;
  std::uint64_t every_ = 1, seen_ = 0;
  std::vector<std::uint64_t> falls_;  // when the counter was lower than before
};

// The power of a GPU that does nothing: the least mean of a second without activity in which power
// did not change. It changes when the first process comes, and in the seconds after work.
class IdlePower {
 public:
  struct Found {
    double watts = 0;
    std::uint64_t from = 0, to = 0;
  };

  void add(const GpuSample& sample);
  const std::optional<Found>& least() const { return least_; }

 private:
  static constexpr std::uint64_t SECOND = 1'000'000'000;
  static constexpr std::uint64_t FEWEST = 3;  // samples in a second
  // It varies by a watt or two from one sample to the next.
  static constexpr double STEADY_WATTS = 4, STEADY_SHARE = 0.05;

  struct Second {
    std::uint64_t from = 0, samples = 0;
    double sum = 0, least = 0, most = 0;
  };

  bool is_steady() const;

  std::optional<Found> least_;
  std::optional<Second> current_;
  std::uint64_t settled_ = 0;  // from here on: a second after the last activity
};

// Whether one process had the GPU for itself, going by those that NVML named.
class SoleProcess {
 public:
  void add(const GpuSample& sample);
  // Nothing: several had it, or none was named; why_not() says which.
  std::optional<std::uint32_t> pid() const;
  std::string why_not() const;
  std::size_t named() const { return pids_.size(); }  // at most MAX
  std::uint64_t first() const { return first_; }      // when it was named
  std::uint64_t last() const { return last_; }

 private:
  static constexpr std::size_t MAX = 16;

  std::vector<std::uint32_t> pids_;  // that were named
  std::uint64_t asked_ = 0, first_ = 0, last_ = 0;
};

}  // namespace cudabpf::analyze
