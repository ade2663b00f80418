// Where the lines of a trace go, to files or to memory: in blocks, none of which is in two files or
// parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "trace/end.hpp"

namespace cudabpf {

// Whole lines on their way.
struct LineBlock {
  std::unique_ptr<char[]> bytes;
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::uint64_t lines = 0;
  // What is kept in memory up to here is to be written, with these lines at its end.
  struct WriteKept {
    std::string because;  // empty: it is not
    std::string unfinished = {};
    EventCounts counts = {};  // of them
  };
  struct FileEndsHere {
    FileEnd end;              // without what only the writer knows: lines, output losses
    std::string next_header;  // of the next file; empty: the trace ends
    FilePart next;
    WriteKept write = {};
  };
  std::unique_ptr<FileEndsHere> file_end;
};

class TraceOutput {
 public:
  virtual ~TraceOutput() = default;
  // Starts to handle blocks. `trace_start_ns` is ts 0 on CLOCK_MONOTONIC.
  virtual void start(std::string header, const FilePart& part, std::uint64_t trace_start_ns) = 0;
  virtual LineBlock take() = 0;  // an empty block; waits while too many are on their way
  virtual void put(LineBlock block) = 0;
  virtual void stop() = 0;  // returns when all that was put has been handled
  // Size of what is stored divided by the size of the lines; 1 if they are not compressed.
  virtual double compression() const = 0;
};

}  // namespace cudabpf
