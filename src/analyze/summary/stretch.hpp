// The work that is judged: iterations after warm-up; where nothing repeats, all from the first
// launch to the end of the last wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "analyze/analysis.hpp"
#include "analyze/iterations/execution.hpp"

namespace cudabpf::analyze {

struct Stretch {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t time = 0;  // less than from begin to end if there are pauses between iterations
  std::uint64_t rounds = 0;
  std::uint64_t launches = 0;  // in all rounds
  bool is_done = true;         // its time ends when the GPU was done, as far as is known
  Spent spent;

  double share(std::uint64_t part) const { return analyze::share(part, time); }
  // A copy to the host waits for the work before it.
  std::uint64_t waiting() const { return spent.waiting + spent.to_host; }
  std::uint64_t outside() const { return time - std::min(time, spent.in_calls); }
  std::uint64_t others() const {
    std::uint64_t counted =
        spent.launching + spent.memory + spent.module + spent.to_device + waiting();
    return spent.in_calls - std::min(spent.in_calls, counted);
  }

  double per_second() const {  // rounds; 0: there are none, or it is not known
    return is_done && time ? static_cast<double>(rounds) * 1e9 / static_cast<double>(time) : 0;
  }
  // "an iteration takes 5.18 ms"
  std::string round_text() const;
  std::string part_text(std::uint64_t part) const { return percent(part, time); }
  std::string launches_text() const;  // in a round: "248 launches"
};

Stretch stretch_of(const Execution& execution);

}  // namespace cudabpf::analyze
