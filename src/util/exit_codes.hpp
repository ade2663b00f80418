// The process's exit statuses. `run` passes on its command's status, so cudabpf's own lie where
// commands seldom have theirs.
#pragma once

namespace cudabpf::exit_code {

inline constexpr int OK = 0;
inline constexpr int USAGE = 2;
inline constexpr int DIFFERENT = 117;          // a replay left other bytes than the program
inline constexpr int CONDITION_HOLDS = 118;    // one of those given with --fail-if
inline constexpr int CONDITION_UNKNOWN = 119;  // one of them could not be judged, and none holds
inline constexpr int NOT_PERMITTED = 120;
inline constexpr int KERNEL_UNSUPPORTED = 121;
inline constexpr int NO_TARGET = 123;
inline constexpr int OUTPUT_FAILED = 124;
inline constexpr int FAILED = 125;
inline constexpr int CANNOT_EXECUTE = 126;
inline constexpr int NOT_FOUND = 127;
inline constexpr int SIGNAL_BASE = 128;  // + the signal's number

}  // namespace cudabpf::exit_code
