// The kernel's tracepoints by name.
#pragma once

#include <cstdint>
#include <string>

#include "collect/bpf/link.hpp"
#include "collect/tracepoint_fields.hpp"
#include "util/result.hpp"

namespace cudabpf {

// The number of a tracepoint ("syscalls", "sys_enter_ioctl"), even if tracefs is not mounted.
Result<std::uint64_t> tracepoint_id(const std::string& category, const std::string& name);

// The offsets of its fields.
Result<TracepointFields> tracepoint_fields(const std::string& category, const std::string& name);

// Runs the program at every hit, with this cookie.
Result<Link> attach_tracepoint(bpf_program* program, const std::string& category,
                               const std::string& name, std::uint64_t cookie);

}  // namespace cudabpf
