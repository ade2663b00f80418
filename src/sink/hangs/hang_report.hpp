// A hang, told to people and to programs.
#pragma once

#include <cstdint>
#include <string>

#include "sink/hangs/hang.hpp"

namespace cudabpf::hangs {

// What happened in one sentence: "rank 1 of 2 has not entered all_reduce 57, for 31 s".
std::string headline(const Hang& hang);
// That, and what each rank does: lines.
std::string as_text(const Hang& hang);
// One JSON object, with the host and the time.
std::string as_json(const Hang& hang, const std::string& host, std::uint64_t realtime_ns,
                    std::uint64_t overdue_ns);

}  // namespace cudabpf::hangs
