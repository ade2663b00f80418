// Writes a picture over time in the format of some program. Tracks hands it what is on which track.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "util/page/time_scale.hpp"

namespace cudabpf::analyze {

struct Track {
  enum class Kind : std::uint8_t {
    process,
    thread,
    driver,
    stream,
    machine,
    counter,
    gpu,    // all queues of a process on one GPU: nothing is on it itself
    queue,  // what a GPU did, as measured
    communicator,
    ranges,   // the program's own
    windows,  // in which GPU times were recorded
    phases,
    iterations,
  };

  std::uint32_t id = 0;      // unique, from 1; 0: not announced yet
  std::uint32_t parent = 0;  // the track that it is part of; 0: none
  Kind kind = Kind::machine;
  std::uint32_t pid = 0, tid = 0;  // of a process, of a thread; else 0
  std::uint32_t process = 0;       // the pid, changed if the same one came before; 0: machine
  bool bytes = false;              // a counter's unit
  std::string name;
  std::string group;  // of a queue: its GPU's name
};

class TrackWriter {
 public:
  // What is on a track: a span of time, a span without an end, or a point in time.
  enum class Shape : std::uint8_t { slice, endless, instant };
  // Arrows from a call to its driver operations, and to what it puts into a stream: both ends of an
  // arrow have the same number. Arrows to GPU operations have the call's number: their lines come
  // long after the call was written.
  struct Flows {
    std::span<const std::uint64_t> begin = {};  // those to driver operations that begin at a call
    std::uint64_t enqueues = 0;                 // the one to a stream; 0: none
    std::uint64_t end = 0;                      // the one that ends at an operation; 0: none
    const Track* caller = nullptr;              // the track that this one begins on
    std::uint64_t issuing = 0;                  // the call, if arrows to a GPU may begin at it
    std::uint64_t issued_by = 0;                // the call whose arrow ends at a GPU's work
    std::optional<std::uint64_t> queued = {};   // how long after its call the work began
  };
  // A line's name and, for a graph's launch, the kernels that run: "gemm ×12, softmax, 3 more".
  struct Label {
    std::string_view name, kernels = {};
  };
  using Facts = std::vector<std::pair<const char*, std::string>>;

  virtual ~TrackWriter() = default;
  virtual void start(const TraceClocks& clocks) = 0;
  // Comes before anything on the track.
  virtual void track(const Track& track) = 0;
  virtual void begin(const Track& track, const Line& line, const Label& label, Shape shape,
                     const Flows& flows) = 0;
  virtual void end(const Track& track, const Line& line) = 0;  // only of a slice
  // Work that a call has put into a stream. The trace does not say when it ran. `flow`: of the
  // arrow that ends there; 0: there is none.
  virtual void enqueued(const Track& stream, const Line& call, std::string_view name,
                        std::uint64_t flow) = 0;
  virtual void counter(const Track& counter, std::uint64_t ts, std::uint64_t value) = 0;
  // Something that concerns the whole picture.
  virtual void note(const Track& track, std::uint64_t ts, std::string_view name,
                    const Facts& facts) = 0;
  // A part of a run; those of a track follow one another.
  virtual void span(const Track& track, const TimeSpan& when, std::string_view name,
                    const Facts& facts) = 0;
  virtual void finish(const TraceFacts& facts) = 0;
};

// What kind of thing a slice is: of a call its type, of what a GPU did its op.
inline Name category_of(const Line& line) {
  constexpr Name COLLECTIVE{TABLE_WORDS.types[static_cast<std::size_t>(Type::collective)]};
  if (line.communicates) return COLLECTIVE;
  return line.kind == LineKind::call ? line.type : line.op;
}

// Launches and GPU operations are named after their kernel, if it is known.
inline bool is_named_by_kernel(const Line& line) {
  bool launches = line.meaning->work == Work::launch;
  return line.kernel && (launches || line.kind == LineKind::gpu_operation);
}

}  // namespace cudabpf::analyze
