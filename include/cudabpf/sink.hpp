// Where events go.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cudabpf/event.hpp"
#include "cudabpf/tally.hpp"
#include "util/system/clock.hpp"

namespace cudabpf {

struct Feature {
  enum class State : std::uint8_t { no, yes, unknown };
  std::string name;
  State state = State::unknown;
  std::string why;
  bool disabled = false;  // by --no-feature
  bool operator==(const Feature&) const = default;
};

struct Gpu {
  int index = 0;
  std::string name;
  std::string uuid;
  std::string bus_id;
  bool operator==(const Gpu&) const = default;
};

// A GPU that is sampled, and how.
struct SampledGpu {
  std::uint32_t device = 0;  // NVML's index, which need not be CUDA's ordinal
  std::string name;
  std::string uuid;
  std::string bus_id;
  std::string activity;            // where it comes from: gpm, utilization, none
  std::string why;                 // it is not gpm
  std::string power;               // instant, average (of a second); empty: it has none
  std::vector<std::string> lacks;  // fields that the GPU or its driver does not report
  double memory = 0;               // all of it, in bytes; 0: not known
  double power_limit = 0;          // in watts; 0: not known
  bool operator==(const SampledGpu&) const = default;
};

// How GPUs are sampled.
struct Sampling {
  std::uint64_t period_ns = 0;
  std::uint64_t window_ns = 0;  // of activity
  std::uint64_t slow_ns = 0;    // how often temperature, memory, processes and energy are read
  std::vector<SampledGpu> gpus;
  bool own_pids = false;  // cudabpf is in a pid namespace of its own: NVML's pids may be others
  std::string why_not;    // no GPU is sampled
  bool switches = false;  // the driver's records of context switches are read
  std::string switches_why_not;  // why not, if they were wanted
  bool operator==(const Sampling&) const = default;
};

// What is known when the trace begins.
struct Session {
  std::string version;
  std::string host;
  std::string linux_release;
  std::string boot_id;
  RankVariables rank;  // of the command, or of the process that called cudabpf
  std::string arch;
  std::string driver;  // the NVIDIA kernel driver's version; empty: none loaded
  std::vector<Gpu> gpus;
  Sampling sampling;
  std::string mode;                 // run, attach, machine
  std::string source;               // ebpf, inside: where records come from
  std::vector<std::string> unseen;  // what it cannot see, in words
  std::vector<std::string> command;
  std::vector<std::uint32_t> pids;
  std::string profile;
  std::vector<std::string> only;  // patterns of functions; empty: the profile decides
  std::vector<std::string> exclude;
  std::vector<std::string> only_libraries;  // by their keys in libraries.def; empty: all
  std::vector<std::string> left_out;        // kinds of calls that are not all recorded
  bool returns = true;
  bool follow = true;
  bool driver_traced = false;  // --kernel
  std::string driver_way;      // the feature that does it
  std::string gpu_timing;      // --gpu: "nodes", or "graphs" as wholes; empty: no
  std::uint64_t gpu_window_ns = 0, gpu_period_ns = 0;  // in each period, only so long; 0: always
  bool ranges = false;                                 // the program's own are recorded
  bool python = false;                                 // and where in its Python calls are made
  std::uint64_t python_slower_ns = 0;                  // of calls that take so long; 0: of all
  bool shapes = false;                                 // products of matrices are traced
  bool blocks = false;                                 // and blocks of PyTorch's allocator
  bool redacted = false;                               // what reveals people and places is left out
  std::uint64_t ring_size = 0;
  std::uint64_t realtime_ns = 0;  // three clocks at ts 0
  std::uint64_t monotonic_ns = 0;
  std::uint64_t boottime_ns = 0;
  TimeOffsets namespace_offsets;
  std::optional<ClockError> clock_error;  // when the trace began
  std::vector<Library> libraries;
  std::vector<Feature> features;
};

// They must balance: entered = emitted + dropped, and received = emitted.
struct Accounts {
  std::uint64_t entered = 0;
  std::uint64_t emitted = 0;
  std::uint64_t dropped = 0;
  std::uint64_t received = 0;
  bool operator==(const Accounts&) const = default;
};

// How many there are of each kind.
struct EventCounts {
  std::uint64_t calls = 0;
  std::uint64_t unfinished = 0;  // of the calls
  std::uint64_t driver_calls = 0;
  std::uint64_t read_faults = 0;  // of calls and driver calls

  void add(const Call& call) {
    calls++;
    unfinished += call.unfinished;
    read_faults += call.read_fault;
  }
  void add(const DriverCall& call) {
    driver_calls++;
    read_faults += call.read_fault;
  }
};

// How often the name that a call gave a kernel could be compared with the one read from the
// kernel's handle, and whether they agreed.
struct KernelNameCounts {
  std::uint64_t confirmed = 0;
  std::uint64_t contradicted = 0;
  bool operator==(const KernelNameCounts&) const = default;
};

// How GPU operations were joined with the calls that issued them.
struct GpuOperationCounts {
  std::uint64_t operations = 0;  // a launch of a graph counts as one
  std::uint64_t joined = 0;
  std::uint64_t invalid = 0;  // operations without a valid time: they have no line
  std::uint64_t calls = 0;    // that should have issued a GPU operation
  std::uint64_t answered = 0;
  std::array<std::uint64_t, UNJOINED> unjoined{};  // by Unjoined
  std::uint64_t clock_error_ns = 0;                // of the conversion to the trace's clock
  bool operator==(const GpuOperationCounts&) const = default;
};

// What is known when the trace ends.
struct Totals {
  std::uint64_t duration_ns = 0;
  EventCounts counts;
  std::uint64_t processes = 0;  // that were traced
  Accounts accounts;
  TallyAccounts tallied;  // calls that were only counted
  std::array<std::uint64_t, LOSS_COUNT> losses{};
  KernelNameCounts kernel_names;
  std::optional<GpuOperationCounts> gpu_operations;  // with --gpu
  std::optional<ClockReadings> clocks;               // when it ended
  std::optional<ClockError> clock_error;             // likewise
  std::optional<int> command_status;                 // as a shell would give it
  std::string reason;  // why it ended: command exited, interrupted, duration, targets gone
};

// The calls that are open at a moment before which every record has been read.
class OpenCallsNow {
 public:
  virtual ~OpenCallsNow() = default;
  // Each as it is in a trace that ends now, unfinished, and for how long it has been open. Calls of
  // which it is not certain that they are open are left out.
  using Visit = std::function<void(const Call& call, std::uint64_t open_ns)>;
  virtual void each(const Visit& visit) const = 0;
};

// The method of each event is pure, so that no sink of all events forgets one.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void begin(const Session& session) = 0;
  virtual void call(const Call& call) = 0;
  virtual void driver_call(const DriverCall& call) = 0;
  virtual void gpu_error(const GpuError& error) = 0;
  virtual void gpu_sample(const GpuSample& sample) = 0;
  virtual void gpu_operation(const GpuOperation& work) = 0;
  virtual void gpu_times(const GpuTimes& times) = 0;
  virtual void gpu_window(const GpuWindow& window) = 0;  // that has closed
  virtual void range(const NamedRange& range) = 0;       // when it has ended
  virtual void python(const PythonFound& found) = 0;
  // At the end, and before it as often as is wanted: as Source::take_tallies() gives them, also if
  // there are none.
  virtual void tallied(const Tallies& tallies) = 0;
  // How old the last ones may be, as of now. Reading them takes time for each process.
  static constexpr std::uint64_t ANY_AGE = UINT64_MAX;
  virtual std::uint64_t oldest_tallies_ns() const { return ANY_AGE; }
  virtual void process(const Process& process) = 0;
  virtual void library(const Library& library) = 0;  // one that appeared after begin()
  virtual void lost(const LossEvent& loss) = 0;
  // Before each flush(). Each of these calls is passed to call() when it ends: nothing is lost for
  // whoever does not want to know of it before.
  virtual void open_calls(const OpenCallsNow&) {}
  // Called every 0.1 s, so that buffered lines reach the file even while nothing happens.
  virtual void flush() = 0;
  virtual void end(const Totals& totals) = 0;
};

// One that some events suffice for. Losses are what none may forget.
class PartialSink : public Sink {
 public:
  void begin(const Session&) override {}
  void call(const Call&) override {}
  void driver_call(const DriverCall&) override {}
  void gpu_error(const GpuError&) override {}
  void gpu_sample(const GpuSample&) override {}
  void gpu_operation(const GpuOperation&) override {}
  void gpu_times(const GpuTimes&) override {}
  void gpu_window(const GpuWindow&) override {}
  void range(const NamedRange&) override {}
  void python(const PythonFound&) override {}
  void tallied(const Tallies&) override {}
  void process(const Process&) override {}
  void library(const Library&) override {}
  void flush() override {}
  void end(const Totals&) override {}
};

}  // namespace cudabpf
