// The lines of a trace that are not calls (docs/trace-format.md), newline included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cudabpf/sink.hpp"

namespace cudabpf {

constexpr const char* FORMAT_VERSION = "1.8";

// A part of a trace, with a header and an end of its own: one file of several, or what of it was
// kept in memory.
struct Part {
  unsigned number = 0;      // of the file, from 1; 0: there is one
  std::uint64_t since = 0;  // when it begins, ns since the trace began
};

// What a file's last line says.
struct FileEnd {
  Part part;
  bool last = true;             // the trace ends, too
  Totals totals;                // of this file; its reason, if only the trace goes on
  std::optional<Totals> whole;  // of all files; only in the last of several
  std::uint64_t lines = 0;      // in this file, including the header and the last line
};

// The name, or the number if the driver's tables have no name for it.
std::string name_or_number(std::string_view name, std::uint64_t number);

std::string header_line(const Session& session, const Part& part);
std::string driver_line(const DriverCall& call);
// `ts`: of the first launch in the file.
std::string graph_line(const GraphContent& content, std::uint64_t ts);
std::string error_line(const GpuError& error);
std::string process_line(const Process& process);
std::string library_line(const Library& library);
std::string lost_line(const LossEvent& loss);
std::string end_line(const FileEnd& end);

}  // namespace cudabpf
