// Who uses CUDA, and how much of it since the last look: what `cudabpf top` shows.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cudabpf/sink.hpp"
#include "follow/gpu_figures.hpp"
#include "sink/run_memory.hpp"

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
  std::uint32_t pid = 0;  // 0: all those that there was no room for
  std::string name, container, pod;
  bool ended = false;
  TopFigures figures;  // since the last look
  std::uint64_t calls_in_all = 0;
  std::uint64_t held = 0,
                most_held = 0;  // bytes that it allocated, but for host memory: now, and at most
  std::map<std::uint32_t, RunMemory::OfDevice> devices;  // the same by device, or NO_DEVICE
  // The parts of the figures, those with the most calls first. What there was no room for is the
  // last one, TOP_OTHERS: nothing is left out.
  std::vector<TopPart> functions;
  std::vector<TopPart> kernels;  // of the launches that were recorded one by one
  bool has_kernels = false;      // some were, if not in this interval
};
inline constexpr std::string_view TOP_OTHERS = "(others)";

struct TopError {
  std::uint64_t ts = 0;
  std::uint32_t pid = 0;  // 0: none
  std::string what;
};

// What happened in an interval.
struct TopInterval {
  std::uint64_t begin_ns = 0, end_ns = 0;  // since watching began
  std::vector<TopProcess> processes;       // the most time in CUDA first
  TopFigures all;
  GpusFigures gpus;             // of the interval's samples
  std::deque<TopError> errors;  // the last ones, the newest last; also of earlier intervals
  std::uint64_t lost = 0;       // events, as far as they could be counted
  bool lost_uncounted = false;
  bool driver_traced = false;  // ioctls are counted
  // The books: of the last interval alone.
  struct Books {
    Accounts records;
    TallyAccounts tallied;
  };
  std::optional<Books> books;
};

class TopModel {
 public:
  static constexpr std::size_t MOST_PROCESSES = 1024, MOST_ERRORS = 5;
  static constexpr std::size_t MOST_FUNCTIONS = 128, MOST_KERNELS = 128;  // of a process

  void begin(const Session& session);
  // The one way for calls, whether they come one by one or added up. `op` is the function's unless
  // the calls are known to do something else; bytes are those of copies.
  struct Calls {
    std::uint64_t count = 0, time_ns = 0, failed = 0, copies = 0, bytes = 0;
  };
  void add(std::uint32_t pid, const Function& function, Op op, const Calls& calls) {
    add(of(pid), function, op, calls);
  }

  void call(const Call& call);
  // Calls that were only counted: sums since their process was first seen.
  void tallied(std::span<const Tally> tallies);
  void driver_call(const DriverCall& call);
  void gpu_error(const GpuError& error);
  void gpu_sample(const GpuSample& sample) { gpus_.add(sample); }
  void process(const Process& process);
  void lost(const LossEvent& loss);

  // What happened since the last one that was taken.
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
    TopProcess told() const;
  };
  void add(Of& of, const Function& function, Op op, const Calls& calls);
  Of& of(std::uint32_t pid);
  const RunMemory::Role& role(const Function& function);
  void remember(TopError error);
  void tallied(const Tally& now, Tally& before);

  bool all_seen_ = false, driver_traced_ = false;
  std::uint64_t monotonic_ns_ = 0;  // when the trace began
  std::uint64_t begin_ns_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Of>> processes_;
  std::unordered_map<const Function*, RunMemory::Role> roles_;
  // The sums that came last, of processes that live. The source bounds how many there are.
  std::map<std::pair<std::uint32_t, const Function*>, Tally> tallies_;
  GpusFigures gpus_;
  std::deque<TopError> errors_;
  std::uint64_t lost_ = 0;
  bool lost_uncounted_ = false;
};

}  // namespace cudabpf
