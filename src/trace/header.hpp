// The first line of each file of a trace, written and read: what was known when the trace began
// (docs/trace-format.md).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cudabpf/sink.hpp"
#include "trace/merged.hpp"

namespace cudabpf {

constexpr const char* FORMAT_VERSION = "2.0";

// A part of a trace, with a header and an end of its own: one file of several, or what was kept in
// memory.
struct FilePart {
  unsigned number = 0;      // of the file, from 1; 0: there is one
  std::uint64_t since = 0;  // when it begins, ns since the trace began
  bool operator==(const FilePart&) const = default;
};

// `merged`: the traces that it was made of; empty: it was recorded.
std::string header_line(const Session& session, const FilePart& part,
                        const std::vector<MergedTrace>& merged = {});

// Three clocks at ts 0, or at a trace's end, in ns. 0: not known.
struct TraceClocks {
  std::uint64_t realtime = 0, monotonic = 0, boottime = 0;
  TimeOffsets offsets;
  bool operator==(const TraceClocks&) const = default;
};

// A header as it was read. It may be from any program: what it lacks, and what has another type or
// is out of range, is empty, 0 or nothing.
struct TraceHeader {
  std::string format, format_version;
  std::string version;  // of cudabpf
  FilePart part;
  std::vector<MergedTrace> merged;  // empty: it was recorded
  std::string host, linux_release, boot_id, arch;
  RankVariables rank;
  std::string driver;     // the NVIDIA kernel driver's version
  std::vector<Gpu> gpus;  // index -1: not known
  std::optional<Sampling> sampling;
  std::string mode, source;
  std::vector<std::string> unseen;
  std::optional<std::vector<std::string>> command;  // empty: none was started
  std::vector<std::uint32_t> pids;
  std::string profile;
  std::vector<std::string> only, exclude, only_libraries, left_out;
  std::optional<bool> returns, follow, driver_traced;
  std::string driver_way, gpu_timing;
  std::uint64_t gpu_window_ns = 0, gpu_period_ns = 0;
  bool ranges = false;                 // the program's own were to be recorded
  bool python = false;                 // and where in its Python calls are made
  std::uint64_t python_slower_ns = 0;  // of calls that take so long; 0: of all
  bool shapes = false;                 // matrix products were
  bool blocks = false;                 // and blocks of PyTorch's allocator
  bool redacted = false;
  std::uint64_t ring_size = 0;
  std::optional<TraceClocks> clocks;
  std::optional<ClockError> clock_error;
  std::vector<Library> libraries;
  std::vector<Feature> features;

  // The real time at ts 0, in ns since 1970. 0: not known.
  std::uint64_t began() const { return clocks ? clocks->realtime : 0; }
  // GPU times were to be recorded; those of a graph's launch as a whole.
  bool measures_gpus() const { return !gpu_timing.empty(); }
  // They were recorded in windows: what lies between these is not known.
  bool samples_gpus() const { return gpu_period_ns != 0; }
  bool measures_whole_graphs() const { return gpu_timing == "graphs"; }

  bool operator==(const TraceHeader&) const = default;
};

// The clocks, and the clock error, in a header or an end; nothing: it has none.
std::optional<TraceClocks> clocks_in(const nlohmann::json& json);
std::optional<ClockError> clock_error_in(const nlohmann::json& json);

// Nothing: the line is no JSON object. Does not check that it is a header.
std::optional<TraceHeader> header_in(std::string_view line);
// What a line that should be a header is instead: "it looks like other JSON".
std::string_view why_no_header(std::string_view line);

}  // namespace cudabpf
