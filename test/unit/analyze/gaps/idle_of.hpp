// What the analysis says of the idle times of a sample program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/gaps/idle.hpp"
#include "support/sample_program.hpp"

namespace cudabpf::analyze {

struct IdleAnswer {
  std::vector<Idle::OfProcess> processes;
  std::vector<Gap> idle, between;
  std::string until;  // the name of the call that ended the longest
};

inline IdleAnswer answer_of(const SampleProgram& program) {
  LineParser parser;
  Idle idle(parser.names(), 3);
  program.show_to(parser, idle);
  auto idle_times = idle.longest_idle(), between = idle.longest_between();
  IdleAnswer answer{idle.processes(),
                    {idle_times.begin(), idle_times.end()},
                    {between.begin(), between.end()},
                    {}};
  if (!answer.idle.empty()) answer.until = parser.names().text(answer.idle[0].until_name);
  return answer;
}

inline std::uint64_t idle_time(const SampleProgram& program) {
  IdleAnswer answer = answer_of(program);
  return answer.processes.empty() ? 0 : answer.processes[0].idle.total();
}

}  // namespace cudabpf::analyze
