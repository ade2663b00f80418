// Which launches of a kernel are taken into a folder of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/tape.hpp"

namespace cudabpf::replay {

struct Candidate {
  std::size_t step = 0;
  std::string shape, inputs;  // what they have in common with others, whatever it is
};

// At most `count` of them, in the order of the tape: of as many shapes as possible, then with as
// many different inputs as possible, then as far apart as possible. The first is always taken.
std::vector<std::size_t> chosen_steps(const std::vector<Candidate>& candidates, std::size_t count);

// The launches of kernels of this name that can be run. `data` is the capture's, for parameters.
Result<std::vector<Candidate>> candidates_for(const std::string& name, const bundle::Folder& folder,
                                              const Tape& tape);

}  // namespace cudabpf::replay
