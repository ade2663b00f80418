// README.md of an export: what it is, where it came from, how to run it.
#pragma once

#include <string>

#include "replay/export/exported_folder.hpp"

namespace cudabpf::replay {

std::string readme_text(const ExportedKernel& made, const ExportedFolder& folder);
// Which memory was needed, as a sentence.
std::string memory_sentence(const ExportedKernel& made);

}  // namespace cudabpf::replay
