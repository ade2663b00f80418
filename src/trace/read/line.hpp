// One line of a trace, as analyses see it. docs/trace-format.md says what the fields mean.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "cudabpf/cuda_api.hpp"
#include "trace/read/names.hpp"

namespace cudabpf {
struct GpuSample;
struct TraceHeader;
struct TraceEnd;
}  // namespace cudabpf

namespace cudabpf::analyze {

struct Process;
struct LaunchedGraph;
struct IssuingCall;
struct RangePlace;
struct PythonPlace;
inline constexpr Meaning MEANS_NOTHING;

enum class LineKind : std::uint8_t {
  other,  // of a type that a newer version has
  header,
  end,
  call,       // of a CUDA function
  block,      // PyTorch's allocator gave one to a tensor, or took it back
  driver,     // an operation on one of the driver's devices
  interrupt,  // what the driver did for no process
  gpu_error,
  graph,         // what a launched graph holds
  communicator,  // what is known of a communicator
  gpu_sample,
  gpu_operation,  // a kernel, a copy or a fill on a GPU, or a whole launch of a graph
  host_copy,      // from the host's memory to the host's: CUPTI reports it, but no GPU has copied
  gpu_times,      // whether CUPTI reports a process's GPU times, and if not, why
  gpu_window,     // a time in which they were recorded, where they were not always
  range,          // a stretch of time that the program named, or a moment
  range_name,     // what a range's number stands for
  stack,          // what the number of a Python stack stands for
  python,         // whether calls of a process have such stacks, and if not, why
  process,
  library,
  lost,
};

// Whether it is what a thread of a program did, or a GPU at its request.
inline bool is_of_thread(LineKind kind) {
  return kind == LineKind::call || kind == LineKind::block || kind == LineKind::driver;
}
inline bool is_of_gpu(LineKind kind) {
  return kind == LineKind::gpu_operation || kind == LineKind::host_copy;
}

using Dimensions = std::array<std::uint32_t, 3>;

// The collective for which a GPU did something; one of several that were queued together.
struct AskedCollective {
  Name op;                     // "all_reduce"; none: it is not known
  std::uint64_t together = 1;  // how many there were: what is below is of the first of them
  std::uint64_t size = 0, communicator = 0, seq = 0;  // 0: not known
};

// The numbers that a line may have. Names and flags say whether they are there themselves.
enum class Field : std::uint8_t {
#define NUMBER(key, member, type, read, shown) member,
#include "trace/read/line_fields.def"
};

struct Line {
  std::uint64_t number = 0;  // in the file, from 1
  std::string_view text;     // all of it; it and `args` are valid until the next line is read
  LineKind kind = LineKind::other;
  Work work = Work::other;          // its meaning's, but `recorded` where its stream is captured
  bool new_program = false;         // its process runs another program from here on
  bool default_is_threads = false;  // its default stream is its thread's own
  bool communicates = false;  // a GPU did it for a collective: `collective`, if its call is known
  bool holds_collectives = false;  // it is a whole graph's time, in which collectives ran, too

#define NAME(key, member, shown) Name member;
#include "trace/read/line_fields.def"

  std::uint64_t present = 0;  // a bit a Field
#define NUMBER(key, member, type, read, shown) type member{};
#include "trace/read/line_fields.def"

#define FLAG(key, member, shown) bool member = false;
#include "trace/read/line_fields.def"

  std::string_view args;  // as written in the line: an object, or empty

  // The contents of a line of that kind; null: it is of another. Valid until the next of its kind
  // is read.
  const TraceHeader* header = nullptr;
  const TraceEnd* ending = nullptr;

  // What the type and op of a call mean.
  const Meaning* meaning = &MEANS_NOTHING;
  const Api* api = &APIS[0];  // its library; null: one that is not known

  // What follows from the lines before it: see DerivedFields.
  const Process* process = nullptr;      // of a call, of an operation, of a process
  std::span<const Process* const> gone;  // processes that end with this line
  // What the launched graph holds, or the one that the line is about. Null: it is not known.
  const LaunchedGraph* content = nullptr;
  // The call that issued this GPU operation, or that copied. Null: it is not known. Valid until the
  // next line is read.
  const IssuingCall* issuer = nullptr;
  const GpuSample* sample = nullptr;  // of the kind gpu_sample: what it has
  AskedCollective collective;
  // The program's range in which the call was made or the GPU's work was issued, or that the line
  // is about. Null: none, or it is not known.
  const RangePlace* place = nullptr;
  bool wanted = true;  // false: only certain ranges are, and it is of none of these
  // Where in its Python the program made the call, or the call that issued the GPU's work. Null: it
  // is not known.
  const PythonPlace* python = nullptr;
  std::uint64_t context = 0;       // current on its thread; 0: not known
  std::uint64_t context_gone = 0;  // the one that it destroyed; 0: none

  bool has(Field field) const { return present & bit(field); }
  void set(Field field) { present |= bit(field); }
  void unset(Field field) { present &= ~bit(field); }
  std::uint64_t end() const { return ts + duration; }
  // How the call ended, if that is not known; empty: it is.
  std::string_view state() const {
    if (unfinished) return "unfinished";
    if (return_lost) return "return_lost";
    return entry_lost ? "entry_lost" : "";
  }
  // It returned, and with an error.
  bool failed() const {
    return kind == LineKind::call ? call_failed() : error || (ret < 0 && !was_restarted());
  }

 private:
  static constexpr std::uint64_t bit(Field field) {
    return std::uint64_t{1} << static_cast<unsigned>(field);
  }
  bool call_failed() const { return api ? api->is_failure(ret) : ret != 0; }
  // A signal came, and the kernel makes the system call again: these never reach a program.
  bool was_restarted() const {
    constexpr int ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516;
    return ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK;
  }
};

// An operation on the driver's devices was refused: by the kernel, or by the driver, whose own
// status is apart from the system call's result.
inline bool refused(const Line& line, Name nv_ok) {
  return line.failed() || (line.status && line.status != nv_ok);
}

}  // namespace cudabpf::analyze
