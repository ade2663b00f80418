// A kernel of a capture, taken into a folder of its own: `replay --export`.
#pragma once

#include <chrono>
#include <string>

#include "bundle/folder.hpp"
#include "replay/export/exported_folder.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

struct ExportOptions {
  std::string folder, output;
  std::string kernel;  // mangled
  std::size_t occurrences = 4;
  std::chrono::milliseconds patience{std::chrono::minutes(1)};
};

// Makes the folder `output`, which is new or empty, and runs what is in it.
Result<ExportedKernel> export_kernel(const bundle::Folder& folder, const Tape& tape,
                                     const ExportOptions& options);

}  // namespace cudabpf::replay
