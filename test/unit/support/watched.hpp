// What processes do while `cudabpf top` watches them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sink/top/top_model.hpp"
#include "support/sample_calls.hpp"

namespace cudabpf {

inline void launch(TopModel& model, std::uint32_t pid, std::uint64_t duration = 2500) {
  SampleCall call("cuLaunchKernel", std::vector<std::uint64_t>(11));
  call.pid = pid;
  call.duration = duration;
  model.call(call);
}

inline void begins(TopModel& model, std::uint32_t pid, const char* name) {
  Process process;
  process.op = Process::Op::exec;
  process.pid = pid;
  process.comm = name;
  model.process(process);
}

}  // namespace cudabpf
