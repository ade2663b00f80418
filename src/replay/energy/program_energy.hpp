// What the program's iterations used, as its trace has it.
#pragma once

#include <string>
#include <vector>

#include "replay/energy/predicted_energy.hpp"

namespace cudabpf::replay {

Result<ProgramEnergy> read_program_energy(const std::vector<std::string>& paths,
                                          const Manifest& manifest);

}  // namespace cudabpf::replay
