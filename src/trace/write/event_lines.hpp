// The lines of a trace that are neither calls nor its first or last one (docs/trace-format.md),
// newline included.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cudabpf/sink.hpp"

namespace cudabpf {

// The name, or the number if the driver's tables have no name for it.
std::string name_or_number(std::string_view name, std::uint64_t number);

std::string driver_line(const DriverCall& call);
// `ts`: of the first launch in the file.
std::string graph_line(const GraphContent& content, std::uint64_t ts);
// Says what a communicator is, before a call at that time that names it.
std::string communicator_line(const Communicator& communicator, std::uint64_t ts);
std::string error_line(const GpuError& error);
std::string process_line(const Process& process);
std::string library_line(const Library& library);
std::string lost_line(const LossEvent& loss);

}  // namespace cudabpf
