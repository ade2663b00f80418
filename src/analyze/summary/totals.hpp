// What a trace's lines add up to: counts by type and name, the slowest calls, transfers, requests
// to the driver and when its scheduler was involved, errors.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/graph_launches.hpp"
#include "analyze/short_names.hpp"
#include "analyze/work.hpp"
#include "state/gpu_figures.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"
#include "util/largest.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

// A call or an operation of the driver that took long.
struct Slow {
  std::uint64_t duration = 0, ts = 0, id = 0;  // id 0: it is not a call
  std::uint32_t pid = 0, tid = 0;
  Name name, what;  // its kernel or its command, if it has one
  bool is_kernel = false;
};

struct Slower {
  bool operator()(const Slow& a, const Slow& b) const {
    return std::tuple(a.duration, b.ts) > std::tuple(b.duration, a.ts);
  }
};

class Totals : public Analysis {
 public:
  struct Times {
    std::uint64_t count = 0;
    std::uint64_t timed = 0, time = 0;  // those whose duration is known, and its sum (ns)
    std::uint64_t bytes = 0;
    std::uint64_t failed = 0;
  };
  struct Failure {
    Name name, error;
    std::uint64_t count = 0, first_ts = 0, first_id = 0;
  };
  // What a process issued to a GPU, by the process's numbering.
  struct Device {
    std::uint64_t process = 0;  // its number in the trace
    std::uint32_t pid = 0;
    std::int64_t ordinal = 0;
    std::uint64_t launches = 0;
    Times copies, waits;
  };
  struct Death {  // of a process, by a signal
    std::uint32_t pid = 0;
    std::int64_t signal = 0;
    std::uint64_t ts = 0;
  };

  explicit Totals(Names& names);

  void line(const Line& line) override;
  void outside(const Line& line) override { kernels_.line(line); }
  void finish(const TraceFacts& facts) override;

  std::uint64_t calls = 0, launches = 0, recorded_launches = 0, graph_launches = 0, unfinished = 0,
                untimed = 0;
  std::uint64_t nested_launches = 0;  // made inside other calls
  std::uint64_t ran = 0;              // launches of kernels that were neither captured nor failed
  std::uint64_t driver_calls = 0;
  // Launches that gave the GPU work, each counted once.
  std::uint64_t launched() const {
    return launches - nested_launches - recorded_launches + graph_launches;
  }
  // Kernels that the GPU ran, in graphs, too.
  std::uint64_t kernel_runs() const { return saturating_sum(ran, graphs_.kernels()); }
  const GraphLaunches& graphs() const { return graphs_; }
  std::map<std::string, std::uint64_t> lines_by_type, lines_by_name;
  std::map<std::string, Times> transfers;   // by direction
  std::map<std::string, Times> waits;       // by function
  std::map<std::string, Times> groups;      // of requests to the driver
  std::map<std::string, Times> scheduling;  // by command of its scheduler
  Times launching, allocations;
  std::uint64_t first_scheduling = 0, last_scheduling = 0, first_launch = 0;
  std::uint64_t scheduling_after_launch = 0;
  std::vector<Slow> slowest, slowest_of_driver;  // the few that took longest, the longest first
  std::vector<Failure> failures;                 // the most frequent first
  std::vector<Device> devices;                   // the busiest few first
  std::vector<Death> deaths;                     // the first few
  std::uint64_t xids = 0;
  GpusFigures gpus;  // as they were sampled
  // "gemv<float>": what a slow call was about, as other answers name it.
  std::string what_of(const Slow& slow) const;

 private:
  static constexpr std::size_t SLOWEST = 10, DEATHS = 16;
  // At most this many of each are kept apart; later ones are counted as one.
  static constexpr std::size_t MAX_KINDS = 4096;
  using Slowest = Largest<Slow, Slower>;

  void call(const Line& line);
  void driver(const Line& line);
  void process(const Line& line);
  void device(const Line& line, Work work);
  static void note_slow(Slowest& slowest, const Line& line);
  static constexpr std::size_t MAX_SCHEDULING = 1 << 12;  // whose times are kept
  std::vector<std::uint64_t> scheduling_times_;

  // Texts are looked up once, at the end.
  using ByName = std::unordered_map<std::uint32_t, Times>;
  std::map<std::string, Times> named(const ByName& times) const;
  Times& of(ByName& times, Name name) const;

  static constexpr std::size_t MAX_DEVICES = 1024;                    // followed
  std::map<std::pair<std::uint64_t, std::int64_t>, Device> devices_;  // by process and number
  Slowest slow_calls_{SLOWEST}, slow_driver_calls_{SLOWEST};

  Names& names_;
  ShortNames kernels_;
  GraphLaunches graphs_;
  Name scheduling_, ioctl_, others_, exit_;
  std::vector<std::uint64_t> type_counts_, name_counts_;  // by the name's number
  ByName transfers_, waits_, groups_, scheduling_by_command_;
  HashMap<std::uint64_t, Failure> failures_;  // by name and error
};

std::vector<std::pair<std::string, Totals::Times>> longest_first(
    const std::map<std::string, Totals::Times>& times);

}  // namespace cudabpf::analyze
