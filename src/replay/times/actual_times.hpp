// What a trace says about the operations of a tape: when the GPU did each of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/gaps/busy.hpp"
#include "replay/launches.hpp"
#include "replay/tape.hpp"
#include "util/hash.hpp"

namespace cudabpf::replay {

struct ActualOperation {
  analyze::GpuOp op = analyze::GpuOp::kernel;
  std::uint64_t begin = 0, end = 0;
  std::uint32_t launch = NONE;  // a kernel's, of distinct_launches()
};

struct ActualTimes {
  std::vector<ActualOperation> operations;  // in any order
  std::uint64_t wall = 0;                   // ns, of the iteration
};

class ActualTimesReader : public analyze::Analysis {
 public:
  ActualTimesReader(const Tape& tape, const Manifest& manifest, analyze::Names& names);

  void line(const analyze::Line& line) override;
  void outside(const analyze::Line& line) override { this->line(line); }

  // Once the whole trace was read. An error: it has not measured this capture, and what to do.
  Result<ActualTimes> times(const analyze::TraceFacts& facts) const;

 private:
  // A call on the tape that gives the GPU work.
  struct Call {
    std::vector<std::uint32_t> launches;  // distinct ones; several: of a graph
    bool is_graph = false, is_in_trace = false;
  };

  void add_call(const analyze::Line& line, Call& call);
  void add_operation(const analyze::Line& line, const Call& call);
  // What the call launched there; NONE: nothing that the tape has.
  std::uint32_t launch_of(const analyze::Line& line, const Call& call) const;
  bool has_name(std::uint32_t launch, std::string_view name) const;
  void note_other(std::uint64_t call, const std::string& why);

  const Manifest& manifest_;
  analyze::Names& names_;
  std::vector<DistinctLaunch> distinct_;
  std::vector<std::string> kernels_;  // theirs, demangled
  HashMap<std::uint64_t, Call> calls_;
  ActualTimes times_;
  std::uint64_t in_trace_ = 0;  // calls
  bool measured_ = false;       // any GPU operation
  bool whole_graph_ = false;
  std::string other_;  // why the trace is that of another run; empty: nothing says so
};

// Reads the trace, of one file or several.
Result<ActualTimes> read_actual_times(const std::vector<std::string>& paths, const Tape& tape,
                                      const Manifest& manifest);

// Whether that GPU, which the trace has samples of, is the capture's.
bool is_of_capture(const TraceHeader& header, std::uint32_t device, const Manifest& manifest);

// Why times of the trace's GPUs say nothing about the capture's; empty: they do.
std::string why_other_gpu(const TraceHeader& header, const Manifest& manifest);

}  // namespace cudabpf::replay
