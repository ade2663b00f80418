// Times between two events of the driver.
#pragma once

#include <cstdint>

#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

inline constexpr unsigned WITH_TIME = 0, WITHOUT_TIME = 2;  // CUevent_flags

// Both have been reached.
Result<std::uint64_t> ns_between(const Driver& driver, Handle begin, Handle end);

}  // namespace cudabpf::replay
