// Where traces go whose programs have been asked to by variables (CUDABPF_OUTPUT): each program of
// a job by a name of its own. Pure.
#pragma once

#include <string>
#include <vector>

#include "util/result.hpp"

namespace cudabpf::cli {

// What the placeholders stand for.
struct TracedProgram {
  std::string pid;   // %p
  std::string host;  // %h
  std::string rank;  // %r: its number in a job; empty: it has none
};

// The rank that a launcher (torchrun, mpirun, srun) has given to the program with this environment.
std::string rank_in(const std::vector<std::string>& environment);

// The trace's path. `wanted` is a pattern, or a folder: `is_folder`, or it ends with "/". Empty:
// the folder "traces". `timestamp` is part of the name in a folder.
Result<std::string> output_path(const std::string& wanted, bool is_folder,
                                const TracedProgram& program, const std::string& timestamp);

}  // namespace cudabpf::cli
