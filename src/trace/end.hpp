// The last line of each file of a trace, written and read: what was known when the file, or the
// trace, ended (docs/trace-format.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cudabpf/sink.hpp"
#include "trace/header.hpp"

namespace cudabpf {

struct FileEnd {
  FilePart part;
  bool last = true;             // the trace ends, too
  bool has_accounts = true;     // false: those of `totals` are not known
  Totals totals;                // of this file; its reason, if only the trace goes on
  std::optional<Totals> whole;  // of all files; only in the last of several
  std::uint64_t lines = 0;      // in this file, including the header and the last line
};

std::string end_line(const FileEnd& end);

// What an end line adds up, for its file or for the whole trace.
struct TraceTotals {
  std::optional<std::uint64_t> duration_ns, calls, unfinished, driver_calls, read_faults;
  std::map<std::string, std::uint64_t> losses;  // by reason, also those of a newer version
  bool operator==(const TraceTotals&) const = default;
};

// An end as it was read. It may be from any program: what it lacks, and what has another type or is
// out of range, is empty, 0 or nothing.
struct TraceEnd {
  unsigned part = 0;
  bool last = true;
  std::optional<std::uint64_t> lines;
  TraceTotals totals;
  std::optional<TraceTotals> whole;
  std::optional<Accounts> accounts;  // all four
  KernelNameCounts kernel_names;
  std::optional<GpuOperationCounts> gpu_operations;
  std::optional<TraceClocks> clocks;
  std::optional<ClockError> clock_error;
  std::optional<int> command_status;
  std::string reason;
  bool operator==(const TraceEnd&) const = default;
};

// Nothing: the line is no JSON object. Does not check that it is an end.
std::optional<TraceEnd> end_in(std::string_view line);

}  // namespace cudabpf
