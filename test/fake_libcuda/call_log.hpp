// Logs every call in full to DIR/calls.PID.jsonl (FAKE_CUDA_LOG=DIR), one line per call, written by
// one write(2) when it returns: nothing is lost to exec, _exit or SIGKILL, and a call that hangs
// has no line. README.md describes the fields.
#pragma once

#include <string>
#include <vector>

#include "graph_nodes.hpp"
#include "observe.hpp"

namespace fake {

struct FinishedCall {
  const Symbol& symbol;
  const uint64_t* words;
  const Passed* passed;
  int passed_count;
  Status status;
  bool nested;
  bool captured;
  const std::string* ran;  // text_of_ran's
  Injection injection;     // when it began
  uint64_t begin_ns, end_ns;
};

void log_call(const FinishedCall& call);
// The fields that say what a launched graph did: once, and in the bodies of conditional nodes.
std::string text_of_ran(const std::vector<const Work*>& once,
                        const std::vector<const Work*>& in_bodies);
void restart_call_log();  // after fork: the child's calls go to its own file

}  // namespace fake
