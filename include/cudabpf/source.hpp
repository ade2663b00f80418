// Where records come from. One thread controls a source; another, the reader, takes the records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cudabpf/function_filter.hpp"
#include "cudabpf/sink.hpp"
#include "cudabpf/tally.hpp"
#include "cudabpf/taped_process.hpp"
#include "cudabpf/thread_id.hpp"
#include "util/result.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

// Which GPU times are recorded, from CUPTI.
enum class GpuTiming : std::uint8_t {
  none,
  nodes,   // of each kernel, copy and fill, also of those in graphs
  graphs,  // of each launch of a graph as a whole
};

// What to record, and for which processes.
struct SourceOptions {
  FunctionFilter filter;
  std::uint64_t ring_size = 0;        // 0: what is usual for the source
  std::uint32_t most_tallies = 8192;  // kept at once, if calls are only counted
  bool tally_times = false;           // by class, and failures by result: Tallies has them
  bool follow_children = true;
  bool calls = true;      // record calls of libcuda's functions
  bool processes = true;  // record starts and ends of processes and threads
  bool driver = false;    // record operations on the NVIDIA driver's devices
  bool python = false;    // record where in the program's Python calls are made
  // By eBPF: of calls that take at least so long; 0: of none.
  std::uint64_t python_slower_ns = 0;
  GpuTiming gpu = GpuTiming::none;
  // How long, in each period, that is recorded; 0: always.
  std::uint64_t gpu_window_ns = 0, gpu_period_ns = 0;
  std::vector<std::string> disabled_features;
  std::vector<std::string> libraries;  // given by --library
  std::string library_path;            // the traced program's LD_LIBRARY_PATH
  Taping* taping = nullptr;            // captures an iteration; null: nobody does
  // Trace only these processes, so that no other pays; empty: not known yet.
  std::vector<std::uint32_t> only_in;
  // True: placing more probes is pointless, since a signal has come or the command has ended.
  // Kernels that take one probe at a time take up to a minute for all of them.
  std::function<bool()> give_up = [] { return false; };
};

// A folder of the unified (v2) cgroup hierarchy.
struct CgroupFolder {
  std::uint64_t id = 0;     // as the kernel side compares it
  std::uint32_t level = 0;  // its depth below the root
  std::string path;         // as /proc/PID/cgroup has it
};

// What a source has learned by other means than records.
struct News {
  std::vector<Library> libraries;  // newly probed
  std::vector<LossEvent> losses;
  std::vector<GpuError> gpu_errors;  // from the kernel's log
  std::vector<GpuSample> gpu_samples;
  std::optional<DriverVersion> driver;  // if one has just been loaded

  void add(News more);
};

class Source {
 public:
  using OnRecord = std::function<void(std::span<const std::byte> record)>;
  using Losses = std::array<std::uint64_t, LOSS_COUNT>;

  virtual ~Source() = default;

  // ----- called by the controlling thread

  // Fills in what a trace's header says about the source.
  virtual void describe(Session& session) const = 0;
  // The trace begins: its ts 0 is this time on CLOCK_MONOTONIC.
  virtual void begin(std::uint64_t begin_ns) = 0;
  // Gets ready for the reader. Processes selected before this call are already being recorded.
  virtual Result<> start(OnRecord on_record) = 0;
  virtual void select_process(std::uint32_t pid) = 0;
  virtual void select_cgroup(const CgroupFolder& folder) = 0;
  virtual void select_all() = 0;
  // Descriptors that become readable when there is news.
  virtual std::vector<int> watch_fds() const = 0;
  virtual News look() = 0;
  // The last news, when the trace is about to end.
  virtual News last_look() = 0;
  // Records nothing from now on; records already made can still be polled.
  virtual void stop() = 0;
  virtual std::size_t libraries_attached() const = 0;
  // Libraries become known as programs load them, so having none yet means nothing.
  virtual bool waits_for_libraries() const = 0;
  // The capabilities that the source needs from now on. The process may give up all others.
  virtual Capabilities needs() const = 0;

  // ----- called by the reader

  struct Polled {
    bool much = false;        // there were many
    std::uint64_t until = 0;  // CLOCK_MONOTONIC: what was made before then has been handed over
    // There was more than one call hands over: the next polls continue.
    bool unfinished = false;
  };
  // Hands over every waiting record, those of one thread in the order in which they were made.
  virtual Polled poll() = 0;
  // Time has run out: records that still wait count as lost.
  virtual void abandon() = 0;
  // Losses of single processes found since the last call. `last`: nothing is polled any more, so no
  // process can account for more.
  virtual std::vector<LossEvent> audit(bool last) = 0;
  // The function that a record names by this number; null if there is none.
  virtual const Function* function(std::uint16_t number) const = 0;
  virtual DriverDevice device(std::uint32_t number) const = 0;
  // The sums of calls that make no records: of all living processes and, a last time, of those that
  // have ended.
  virtual Tallies take_tallies() = 0;
  // How many records the thread has lost so far, as its next record would say.
  virtual std::uint32_t drops(ThreadId thread) const = 0;
  // Some exits of processes may have left no record.
  virtual bool may_miss_exits() const = 0;

  // ----- called by either

  // How many selected processes have produced no record yet.
  virtual std::size_t awaited() const = 0;
  // The process has ended: a later one with its pid is another, and not selected.
  virtual void forget_process(std::uint32_t pid) = 0;
  // The process is traced and has not ended.
  virtual bool is_alive(std::uint32_t pid) const = 0;
  // What the source has lost so far. The caller of poll() counts what it received.
  virtual Losses losses() const = 0;
  virtual Accounts accounts() const = 0;
  virtual TallyAccounts tally_accounts() const = 0;
};

}  // namespace cudabpf
