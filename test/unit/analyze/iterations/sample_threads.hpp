// A sample program's threads, their iterations and their phases.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "analyze/iterations/iterations.hpp"
#include "support/sample_program.hpp"

namespace cudabpf::analyze {

inline std::vector<ThreadWork> threads_of(const SampleProgram& program) {
  LineParser parser;
  Idle idle(parser.names(), 0);
  ThreadsAtWork threads({}, idle);
  program.show_to(parser, threads);
  return threads.threads();
}

// A token of a model with layers, each of three kernels.
inline void token(SampleProgram& program, int layers, std::uint64_t ns = 10) {
  program.launch("embed", ns);
  for (int layer = 0; layer < layers; layer++)
    for (auto kernel : {"norm", "multiply", "add"}) program.launch(kernel, ns);
  program.launch("scores", ns);
  program.launch("argmax", ns);
}

}  // namespace cudabpf::analyze
