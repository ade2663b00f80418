// What --export made, for people and for programs.
#pragma once

#include "replay/export/exported_folder.hpp"
#include "util/page/page.hpp"

namespace cudabpf::replay {

bundle::Json export_json(const ExportedKernel& made, const std::string& output, const Tape& tape);
void add_export(Page& page, const ExportedKernel& made, const std::string& output,
                const Tape& tape);

}  // namespace cudabpf::replay
