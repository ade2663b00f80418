// The kernel's tracepoints by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "collect/bpf/link.hpp"
#include "util/result.hpp"

namespace cudabpf {

// The number of a tracepoint ("syscalls", "sys_enter_ioctl"), also where tracefs is not mounted.
Result<std::uint64_t> tracepoint_id(const std::string& category, const std::string& name);

// Where its fields lie, by their names.
Result<std::map<std::string, std::uint16_t>> tracepoint_fields(const std::string& category,
                                                               const std::string& name);

// Attaches to every hit of it; the cookie is the program's.
Result<Link> attach_tracepoint(bpf_program* program, const std::string& category,
                               const std::string& name, std::uint64_t cookie);

}  // namespace cudabpf
