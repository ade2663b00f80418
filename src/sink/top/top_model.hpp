// Which processes use CUDA, and how much of it since the last look: what `cudabpf top` shows.
#pragma once

#include <bitset>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cudabpf/sink.hpp"
#include "sink/run_memory.hpp"
#include "state/gpu_figures.hpp"
#include "util/hash.hpp"

namespace cudabpf {

struct TopFigures {
  struct Copies {
    std::uint64_t count = 0, bytes = 0;
  };
  std::uint64_t calls = 0;
  std::uint64_t launches = 0;    // of them: they launch a kernel or a graph
  std::uint64_t failed = 0;      // of them
  std::uint64_t time_ns = 0;     // in CUDA, of all threads: a call within another is part of it
  std::uint64_t waiting_ns = 0;  // of the time: in calls that synchronise
  std::uint64_t driver_calls = 0;
  std::map<Op, Copies> copies;

  void add(const TopFigures& other);
};

// What the calls of one function, or the launches of one kernel, add up to in an interval.
struct TopPart {
  std::string name;
  std::uint64_t calls = 0, failed = 0, time_ns = 0;
};

struct TopProcess {
  std::uint32_t pid = 0;  // 0: stands for all processes that found no room
  std::string name, container, pod;
  bool ended = false;
  TopFigures figures;  // since the last look
  std::uint64_t calls_in_all = 0;
  std::uint64_t held = 0,
                most_held = 0;  // bytes that it allocated, without host memory: now, and at most
  bool holds_unseen = false;    // it may hold more, from before it was watched
  std::map<std::uint32_t, RunMemory::OfDevice> devices;  // the same by device, or NO_DEVICE
  // The figures by part, those with the most calls first. Parts that found no room are added up in
  // the last one, TOP_OTHERS: nothing is left out.
  std::vector<TopPart> functions;
  std::vector<TopPart> kernels;  // of the launches that were recorded one by one
  bool has_kernels = false;      // there were some, perhaps not in this interval
};
inline constexpr std::string_view TOP_OTHERS = "(others)";

// An error of a process, which counts as one however often it repeats.
struct TopError {
  std::uint64_t ts = 0;   // of the last one
  std::uint32_t pid = 0;  // 0: none
  std::string what;
  std::string name = {};  // of the process; empty: not known
  std::uint64_t count = 1;
};

// What was lost.
struct TopLosses {
  std::uint64_t events = 0;
  bool uncounted = false;  // and more, of unknown number
  std::bitset<LOSS_COUNT> why;
  bool any() const { return events || uncounted; }
  void add(const TopLosses& more);
};

// The maxima of a GPU's bars; 0: not known.
struct TopGpu {
  std::string name;
  double memory = 0, power = 0;  // all that it has, in bytes; its limit, in watts
};

// What happened in an interval.
struct TopInterval {
  std::uint64_t begin_ns = 0, end_ns = 0;  // since watching began
  std::vector<TopProcess> processes;       // ended ones last; by their time in CUDA, the most first
  TopFigures all;
  GpusFigures gpus;  // of the interval's samples
  std::map<std::uint32_t, TopGpu> sampled_gpus;
  std::deque<TopError> errors;  // the last ones, the newest last; also of earlier intervals
  TopLosses lost;
  bool driver_traced = false;  // ioctls are counted
  // The counts of the last interval alone, which must balance.
  struct Books {
    Accounts records;
    TallyAccounts tallied;
    bool balance() const;
  };
  std::optional<Books> books;
};

class TopModel {
 public:
  static constexpr std::size_t MAX_PROCESSES = 1024, MAX_ERRORS = 5;
  static constexpr std::size_t MAX_FUNCTIONS = 128, MAX_KERNELS = 128;  // of a process

  void begin(const Session& session);
  // Adds calls, whether they come one by one or added up. `op` is the function's unless the calls
  // are known to do something else; bytes are those of copies.
  struct Calls {
    std::uint64_t count = 0, time_ns = 0, failed = 0, copies = 0, bytes = 0;
  };
  void add(std::uint32_t pid, const Function& function, Op op, const Calls& calls) {
    add(of(pid), function, op, calls);
  }

  void call(const Call& call);
  // Calls that were only counted: sums since their process was first seen.
  void tallied(const Tallies& tallies);
  void driver_call(const DriverCall& call);
  void gpu_error(const GpuError& error);
  void gpu_sample(const GpuSample& sample) { gpus_.add(sample); }
  void process(const Process& process);
  void lost(const LossEvent& loss);

  // What happened since the last interval that was taken.
  TopInterval interval(std::uint64_t now_ns) const;
  void begin_next(std::uint64_t now_ns);

 private:
  struct Of {
    TopProcess process;
    RunMemory memory;
    std::unordered_map<const Function*, Calls> functions;  // null: others
    std::map<std::string, Calls, std::less<>> kernels;
    void note_held();
    void note_launch(const Call& call, const Calls& calls);
    TopProcess shown() const;
  };
  void add(Of& of, const Function& function, Op op, const Calls& calls);
  Of& of(std::uint32_t pid);
  // Errors with the same process, function and result (if known) are the same.
  struct ErrorKey {
    std::uint32_t pid = 0;
    const Function* function = nullptr;
    int result = 0;
    bool operator==(const ErrorKey&) const = default;
  };
  void remember(const ErrorKey& key, TopError error);
  void tallied(const Tally& now, Tally& before);

  bool all_seen_ = false, driver_traced_ = false;
  std::uint64_t monotonic_ns_ = 0;  // when the trace began
  std::uint64_t begin_ns_ = 0;
  HashMap<std::uint32_t, std::unique_ptr<Of>> processes_;
  // The latest sums of living processes. The source bounds how many there are.
  std::map<std::pair<std::uint32_t, const Function*>, Tally> tallies_;
  GpusFigures gpus_;
  std::map<std::uint32_t, TopGpu> sampled_gpus_;
  struct Remembered {
    ErrorKey key;
    TopError error;
  };
  std::deque<Remembered> errors_;
  TopLosses lost_;
};

}  // namespace cudabpf
