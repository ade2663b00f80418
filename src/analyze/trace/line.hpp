// One line of a trace, as analyses see it. docs/trace-format.md says what the fields mean.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "analyze/trace/names.hpp"
#include "cudabpf/cuda_api.hpp"

namespace cudabpf::analyze {

struct Process;

enum class LineKind : std::uint8_t {
  other,  // of a type that a newer version has
  header,
  end,
  call,       // of a CUDA function
  driver,     // an operation on one of the driver's devices
  interrupt,  // what the driver did for no process
  gpu_error,
  process,
  library,
  lost,
};

// Which fields a line has. Names say whether they are there themselves.
enum class Field : std::uint8_t {
  id,
  parent,
  call,
  ts,
  duration,
  pid,
  tid,
  ppid,
  ret,
  size,
  ptr,
  dst,
  src,
  stream,
  handle,
  ordinal,
  src_device,
  dst_device,
  grid,
  block,
  shared,
  ioctls,
  count,
  xid,
  cpu,
};

struct Line {
  std::uint64_t number = 0;  // in the file, from 1
  std::string_view text;     // all of it; it and `args` are valid until the next line is read
  LineKind kind = LineKind::other;

  Name type, op, name;
  Name symbol;  // where it differs from `name`
  Name error;   // CUDA_ERROR_OUT_OF_MEMORY, EINVAL
  Name memory;  // `kind` of memory
  Name kernel;
  Name device;  // of the driver: "nvidiactl"; of a GPU's error its PCI address
  Name control, object_class, group, status;  // of an ioctl
  Name comm;
  Name reason, severity;  // of a loss

  std::uint32_t present = 0;  // a bit a Field
  std::uint64_t id = 0, parent = 0, call = 0;
  std::uint64_t ts = 0, duration = 0;  // ns
  std::uint32_t pid = 0, tid = 0, ppid = 0;
  std::int64_t ret = 0;
  std::uint64_t size = 0, ptr = 0, dst = 0, src = 0, stream = 0, handle = 0;
  std::int64_t ordinal = 0;                     // of the device that a call names
  std::int64_t src_device = 0, dst_device = 0;  // of a copy between GPUs
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared = 0;
  std::uint32_t ioctls = 0;
  std::uint64_t ioctl_time = 0;  // ns
  std::uint64_t count = 0;       // of a loss
  std::uint32_t xid = 0;
  std::uint32_t cpu = 0;  // of an interrupt

  bool async = false;
  bool unfinished = false, return_lost = false, entry_lost = false, read_fault = false;
  bool inferred = false;
  bool kernel_from_handle = false;

  std::string_view args;  // as it stands in the line: an object, or empty

  // What follows from the lines before it: see Circumstances.
  const Process* process = nullptr;      // of a call, of an operation, of a process
  std::span<const Process* const> gone;  // processes that are over with this line
  bool new_program = false;              // its process is another program from here on
  bool default_is_threads = false;       // its default stream is that of its thread
  bool recorded = false;                 // its stream is captured: it goes into a graph
  std::uint64_t context = 0;             // current on its thread; 0: not known
  std::uint64_t context_gone = 0;        // that it destroyed; 0: none

  bool has(Field field) const { return present >> static_cast<unsigned>(field) & 1; }
  void set(Field field) { present |= 1U << static_cast<unsigned>(field); }
  void unset(Field field) { present &= ~(1U << static_cast<unsigned>(field)); }
  std::uint64_t end() const { return ts + duration; }
  // It returned, and with an error.
  bool failed() const {
    return kind == LineKind::call ? is_cuda_failure(ret) : error || (ret < 0 && !was_restarted());
  }

 private:
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
