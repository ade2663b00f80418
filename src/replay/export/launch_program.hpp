// launch.cpp: a program that runs an exported kernel without cudabpf. Its text is launch.cpp.in,
// with tables of what is in the folder.
#pragma once

#include <string>

#include "replay/export/exported_folder.hpp"

namespace cudabpf::replay {

std::string launch_program(const ExportedFolder& folder);

}  // namespace cudabpf::replay
