// The ways of capturing: run, attach and the whole machine write what they record, top shows it.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/capture_flags.hpp"
#include "cli/flags/iteration_flags.hpp"
#include "cli/request/targets.hpp"
#include "util/result.hpp"

namespace cudabpf::cli {

struct RunFlags {
  CaptureFlags capture;
  std::string user;
  bool inside = false;
  bool as_root = false;
  IterationFlags iteration;
  std::vector<std::string> command;
};
Result<int> capture_command(const RunFlags& flags);

struct AttachFlags {
  CaptureFlags capture;
  TargetFlags targets;
};
Result<int> capture_running(const AttachFlags& flags);

Result<int> capture_machine(const CaptureFlags& flags);

}  // namespace cudabpf::cli
