// The typed events that every stage after decoding shares.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cudabpf/cuda_api.hpp"
#include "cudabpf/driver.hpp"
#include "cudabpf/places.hpp"
#include "util/system/rank_variables.hpp"

namespace cudabpf {

enum class Loss : std::uint8_t {
#define LOSS(id, name, severity, advice) id,
#include "cudabpf/losses.def"
#undef LOSS
  count_
};
constexpr std::size_t LOSS_COUNT = static_cast<std::size_t>(Loss::count_);

struct LossInfo {
  std::string_view name;
  bool degraded;  // the event is there, but something about it is missing
  std::string_view advice;
};
const LossInfo& info(Loss loss);
const LossInfo* find_loss(std::string_view name);  // null if this version does not know it

struct Dim3 {
  std::uint32_t x = 0, y = 0, z = 0;
  bool operator==(const Dim3&) const = default;
};

// A kernel's name as one process knows it.
struct KernelName {
  std::string mangled;
  std::string full;          // demangled
  std::string short_name;    // for tables
  std::string json;          // `full` as a JSON string with its quotes, since launches repeat it
  bool from_handle = false;  // read from the handle, not learned from a call
};

// What a call's arguments say, in the terms of the trace. A field is absent if the call does not
// have it or it could not be read.
struct Details {
  std::optional<std::uint64_t> size;
  std::optional<std::uint64_t> ptr;
  std::optional<std::uint64_t> dst;
  std::optional<std::uint64_t> src;
  std::optional<std::uint64_t> stream;
  std::optional<std::uint64_t> handle;  // of the kernel, or of VMM memory
  std::optional<std::int32_t> device;
  // The GPUs that a copy between GPUs reads from and writes to.
  std::optional<std::int32_t> src_device;
  std::optional<std::int32_t> dst_device;
  bool has_dims = false;  // grid, block and shared are known
  Dim3 grid, block;
  std::uint32_t shared = 0;
  Op op = Op::none;          // the function's, unless the arguments say more (HtoD for a 2D copy)
  bool inferred_op = false;  // `op` was inferred from addresses known to be device memory
  // What a CUgraphNodeParams says of its node.
  NodeWork node = NodeWork::none;
  std::uint64_t child = 0;                // the graph that it holds
  std::optional<std::uint64_t> identity;  // of the communicator that it makes
};

// A communicator of NCCL, as one of its ranks has it.
struct Communicator {
  std::uint64_t number = 0;  // the trace's own
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> identity;  // the same for all of its ranks
  std::optional<std::int32_t> rank, ranks;
  std::optional<std::int32_t> device;
  std::uint64_t made_by = 0;  // id of the call; 0: not seen
  // The communicator of which it was made, the how-manieth one, and for which part of its ranks.
  std::uint64_t from = 0, ordinal = 0;
  std::optional<std::int32_t> color, key;
  bool late = false;          // it was there before its calls were recorded
  bool lost = false;          // some of its calls may be missing
  std::uint32_t version = 0;  // of what is known of it
};

// What some nodes of a graph do.
struct GraphOperation {
  NodeWork what = NodeWork::none;
  const KernelName* kernel = nullptr;
  std::uint64_t handle = 0;  // of a kernel whose name is not known
  bool has_dims = false;     // grid, block and shared are known
  Dim3 grid, block;
  std::uint32_t shared = 0;
  std::optional<std::uint64_t> size;  // of a copy, a fill or an allocation
  bool conditional = false;           // it runs any number of times

  bool operator==(const GraphOperation&) const = default;
};

// A collective that was captured into a graph.
struct CapturedCollective {
  std::uint64_t call = 0;  // its id
  Op op = Op::none;
  std::uint64_t size = 0;  // bytes that its rank passes

  bool operator==(const CapturedCollective&) const = default;
};

// A product of matrices that was captured into a graph. Captured again, it is another call.
struct CapturedProduct {
  std::uint64_t call = 0;   // its id
  std::uint64_t shape = 0;  // stands for what it multiplies

  bool operator==(const CapturedProduct& other) const { return shape == other.shape; }
};

// What a launched graph holds. Graphs of one process with equal contents have equal numbers.
struct GraphContent {
  std::uint64_t number = 0;
  std::uint32_t pid = 0;
  // Done once per launch.
  std::uint64_t nodes = 0;
  std::uint64_t kernels = 0;
  std::vector<std::pair<GraphOperation, std::uint64_t>> operations;  // and how many nodes do it
  std::vector<CapturedCollective> collectives;                       // in their order
  std::vector<CapturedProduct> products;                             // in theirs
  std::uint64_t more = 0;                                            // nodes that are not listed
};

// Why it is not known what a launched graph holds.
enum class GraphUnknown : std::uint8_t {
  none,
  before,        // it was made before the trace began
  lost,          // calls are missing
  not_recorded,  // some functions that make graphs are not traced, or not known
  changed,       // in a way that cudabpf does not follow
  too_many,      // there was no room for it
};

constexpr std::string_view to_string(GraphUnknown why) {
  constexpr std::string_view NAMES[] = {"",        "before",  "lost", "not_recorded",
                                        "changed", "too_many"};
  return NAMES[static_cast<std::size_t>(why)];
}

struct Product;

struct Call {
  std::uint64_t id = 0;
  // Ids of the calls that made this one, the innermost of its own layer and of a higher one; 0:
  // none
  std::uint64_t parent = 0;
  std::uint64_t within = 0;
  std::uint64_t ts = 0;  // ns since the trace began
  std::uint64_t duration = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  const Function* function = nullptr;
  std::int32_t result = 0;
  bool has_return = false;  // duration and result are known
  bool unfinished = false;  // it never returned: the thread or the trace ended inside it
  // It ended, but its return was not seen: the record was lost, or longjmp left the call.
  bool return_lost = false;
  bool entry_lost = false;  // only its return was seen: arguments and duration are missing
  bool read_fault = false;  // something that an argument points to could not be read
  bool string_cut = false;
  std::span<const std::uint64_t> words;  // integer argument words, as recorded
  std::span<const std::uint64_t> outs;   // what the out-pointers hold, in argument order
  std::string_view text;                 // the string argument, if there is one
  bool has_text = false;
  std::uint64_t payload = 0;  // where its process keeps more of it, for a capture; 0: nowhere
  Details details;
  const KernelName* kernel = nullptr;   // the launched kernel; null if unknown
  const Product* product = nullptr;     // that it asks for; null: it is no product
  const GraphContent* graph = nullptr;  // what the launched graph holds
  GraphUnknown graph_unknown = GraphUnknown::none;
  std::span<const std::int32_t> devices;  // that an argument lists
  // What a call of NCCL names or makes, its number among that one's operations, and the open group
  const Communicator* communicator = nullptr;
  std::span<const Communicator* const> also_made;  // by a call that makes several
  std::uint64_t sequence = 0;
  std::uint64_t group = 0;
  const RangePath* range = nullptr;  // the innermost range in which it was made
  const PythonStack* stack = nullptr;
  std::string_view holder;       // of an allocation: whose code asked for it; empty: not known
  bool captured = false;         // into a graph: not submitted to the GPU
  std::uint32_t ioctls = 0;      // made on this thread during the call and those inside it
  std::uint64_t ioctl_time = 0;  // the time that these ioctls took
};

// An operation on one of the driver's devices or, from `isr` on, work that the driver did for no
// process.
struct DriverCall {
  enum class Op : std::uint8_t {
    ioctl = 1,
    open,
    close,
    mmap,
    poll,
    fault,        // a page of one of its mappings was touched
    isr,          // an interrupt's immediate handler
    bottom_half,  // its threaded handler
    gpu_faults,   // pages that a GPU has touched are brought to it
  };
  Op op = Op::ioctl;
  std::uint64_t call = 0;  // id of the CUDA call that made it; 0: none
  std::uint64_t ts = 0;
  std::uint64_t duration = 0;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::string device;       // "nvidiactl"
  bool has_return = false;  // duration and result are known
  bool unfinished = false;
  bool return_lost = false;
  bool read_fault = false;
  std::int64_t result = 0;              // of the system call, negative for an errno
  std::uint64_t length = 0;             // of a mapping
  std::uint64_t address = 0;            // of a fault
  bool to_write = false;                // of a fault: the page is to be written
  std::uint32_t cpu = 0;                // where an interrupt was handled
  IoctlDetails details;                 // of an ioctl
  std::optional<std::uint32_t> status;  // the driver's own

  // The errno in `result`; 0 if it is not an error.
  int error() const {
    constexpr std::int64_t MAX = 4095;
    return result < 0 && result >= -MAX ? static_cast<int>(-result) : 0;
  }
};

constexpr bool is_interrupt(DriverCall::Op op) { return op >= DriverCall::Op::isr; }

constexpr std::string_view to_string(DriverCall::Op op) {
  constexpr std::string_view NAMES[] = {"",     "ioctl", "open", "close",       "mmap",
                                        "poll", "fault", "isr",  "bottom_half", "gpu_faults"};
  return NAMES[static_cast<std::size_t>(op)];
}

// A GPU error that the driver reports.
struct GpuError {
  std::uint64_t ts = 0;
  std::uint32_t xid = 0;
  std::string_view meaning;          // empty if the number is unknown
  std::string device;                // its PCI address
  std::optional<std::uint32_t> pid;  // the process that the message names: its pid and its name
  std::string comm;
  std::string message;
  bool message_cut = false;
};

// Why a GPU ran slower than it could: bits as NVML gives them.
enum class Throttle : std::uint16_t {
  power_cap = 0x4,
  hardware = 0x8,
  sync_boost = 0x10,
  thermal = 0x20,
  hardware_thermal = 0x40,
  power_brake = 0x80,
};
struct ThrottleName {
  Throttle reason;
  std::string_view name;
};
inline constexpr std::array THROTTLES{ThrottleName{Throttle::power_cap, "power_cap"},
                                      ThrottleName{Throttle::hardware, "hardware"},
                                      ThrottleName{Throttle::sync_boost, "sync_boost"},
                                      ThrottleName{Throttle::thermal, "thermal"},
                                      ThrottleName{Throttle::hardware_thermal, "hardware_thermal"},
                                      ThrottleName{Throttle::power_brake, "power_brake"}};

// A process that computes on a GPU, as NVML reports it.
struct GpuProcess {
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> memory;  // bytes that it holds
};

// A process that had the GPU, and for how long.
struct GpuResident {
  std::uint32_t pid = 0;  // 0: the driver names none
  std::uint64_t ns = 0;
};

// Which processes had a GPU in a stretch of time, from the driver's records of context switches. In
// the rest of it no process had it.
struct GpuResidents {
  std::uint64_t from = 0, to = 0;
  std::vector<GpuResident> processes;
  std::uint64_t unknown_ns = 0;
};

// A GPU's activity, as NVML reports it. What was not read this time is absent.
struct GpuSample {
  std::uint64_t ts = 0;                    // when it was read
  std::uint32_t device = 0;                // NVML's index, which need not be CUDA's ordinal
  std::optional<std::uint64_t> window_ns;  // before ts: what the activities are the mean of
#define GPU_FIGURE(key, unit, decimals, most, title) std::optional<double> key;
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  std::optional<std::uint64_t> throttle;  // bits of Throttle
  std::optional<std::vector<GpuProcess>> processes;
  std::optional<GpuResidents> residents;
};

// Why a GPU operation and a call were not matched.
enum class Unjoined : std::uint8_t {
  none,
  no_call,       // of an operation: no call in the trace submitted it
  no_work,       // of a call: the GPU reports later work of the same stream, but none of this call
  not_reported,  // of a call: neither it nor anything later in its stream was reported
  lost,          // of an operation: something that its thread submitted earlier is missing
  gpu_launched,  // of an operation: started by the GPU itself, in a graph's conditional node
  count_
};
constexpr std::size_t UNJOINED = static_cast<std::size_t>(Unjoined::count_);

constexpr std::string_view to_string(Unjoined why) {
  constexpr std::string_view NAMES[] = {"",     "no_call",     "no_work", "not_reported",
                                        "lost", "gpu_launched"};
  return NAMES[static_cast<std::size_t>(why)];
}

// What a GPU did for a call, and when: a kernel, a copy or a fill, or a whole launch of a graph.
struct GpuOperation {
  enum class Op : std::uint8_t { kernel, copy, set, graph };
  Op op = Op::kernel;
  std::uint64_t call = 0;      // id of the call that submitted it; 0: not found
  Unjoined why_not = {};       // why it was not found
  std::uint64_t ts = 0;        // when it began on the GPU, ns since the trace began
  std::uint64_t duration = 0;  // there
  std::uint32_t pid = 0;
  std::optional<std::uint32_t> device;
  std::uint32_t queue = 0;              // the operations of one queue of a process run in order
  std::optional<std::uint64_t> stream;  // as the call names it
  const KernelName* kernel = nullptr;
  Dim3 grid, block;
  std::uint32_t shared = 0;           // dynamic, in bytes
  std::optional<std::uint64_t> size;  // of a copy or a fill
  cudabpf::Op direction = cudabpf::Op::none;
  std::optional<std::uint32_t> node;  // which node of the graph did it
};

constexpr std::string_view to_string(GpuOperation::Op op) {
  constexpr std::string_view NAMES[] = {"kernel", "copy", "set", "graph"};
  return NAMES[static_cast<std::size_t>(op)];
}

// Whether CUPTI reports GPU times for a process, and if not, why.
struct GpuTimes {
  std::uint64_t ts = 0;
  std::uint32_t pid = 0;
  std::string version;  // of CUPTI: "13.0.1"
  std::string library;  // its path
  bool whole_graphs = false;
  std::uint64_t window_ns = 0, period_ns = 0;  // in each period, only so long; 0: always
  std::string why_not;                         // empty: it reports them
};

// A stretch of time in which a process's GPU times were recorded: all that was submitted in it.
struct GpuWindow {
  std::uint64_t ts = 0, duration = 0;
  std::uint32_t pid = 0;
};

struct Process {
  enum class Op : std::uint8_t { start, fork, exec, exit };
  Op op = Op::start;
  std::uint64_t ts = 0;
  std::uint32_t pid = 0;
  std::uint32_t ppid = 0;
  std::uint32_t ns_pid = 0;  // in its own pid namespace, if that differs
  std::optional<std::uint32_t> uid;
  std::string comm;
  std::string cmdline;
  std::string exe;
  std::string cgroup;
  std::string container_runtime;  // "docker", …; empty: none
  std::string container_id;
  std::string pod;               // the uid of the Kubernetes pod
  std::string unit;              // outside containers: the systemd service or scope
  RankVariables rank;            // what its launcher says of it
  std::optional<int> exit_code;  // for exit
  std::optional<int> signal;
};

// A libcuda, and what became of it.
struct Library {
  std::string_view api;  // its key in libraries.def; empty: not known
  std::string path;
  std::string build_id;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint32_t functions = 0;         // probed
  std::uint32_t skipped = 0;           // left out by the profile, --only or --exclude
  std::uint32_t unknown = 0;           // probed, but not in the table
  std::uint32_t left_out = 0;          // not probed: too many, or their names are not valid
  std::vector<std::string> unpatched;  // of `left_out`, with the reason: inside a process
  std::uint64_t attach_ns = 0;         // how long it took to attach its probes
  std::string error;                   // why it is not traced; empty if it is
  std::uint64_t ts = 0;                // when its probes were in place, if after the trace began
  bool operator==(const Library&) const = default;
};

struct LossEvent {
  Loss reason = Loss::ring_entry;
  std::optional<std::uint64_t> count;  // absent if it cannot be known
  std::uint64_t since = 0;  // the interval in which it happened, ns since the trace began
  std::uint64_t until = 0;
  std::string detail;  // which library, which file
};

}  // namespace cudabpf
