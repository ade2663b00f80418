#include "replay/gpu/events.hpp"

#include <algorithm>
#include <cmath>

namespace cudabpf::replay {

Result<std::uint64_t> ns_between(const Driver& driver, Handle begin, Handle end) {
  constexpr double NS_IN_MS = 1e6;
  float milliseconds = 0;
  TRY(driver.elapsed(&milliseconds, begin, end));
  return static_cast<std::uint64_t>(
      std::llround(std::max(0.0, static_cast<double>(milliseconds)) * NS_IN_MS));
}

}  // namespace cudabpf::replay
