// The new folder of an export, and the texts that are written into it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/messages.hpp"
#include "replay/replayer.hpp"
#include "replay/tape.hpp"
#include "replay/trial/occurrences.hpp"
#include "util/result.hpp"

namespace cudabpf::replay {

// What was made, and how that went.
struct ExportedKernel {
  std::string kernel;
  Gpu gpu;
  std::vector<std::string> notes;
  Extracted extracted;
  std::uint64_t live_launches = 0;  // of this kernel, on the tape
  MemoryTaken memory = MemoryTaken::pointers;
  std::string why_more_memory;  // than what its parameters lead to; empty: that was enough
  FullReplay check;             // of the new folder
  bool is_right() const { return check.failures.empty() && !check.is_different(); }
};

struct ExportedFolder {
  const Manifest* manifest = nullptr;
  const Tape* tape = nullptr;
  std::vector<Occurrence> occurrences;

  const bundle::Launch& launch_of(const Occurrence& occurrence) const {
    return *tape->steps()[occurrence.step].launch;
  }
  const bundle::Kernel& kernel() const {
    return manifest->kernels[launch_of(occurrences.front()).kernel];
  }
};

// For its owner only, like everything in the folder.
Result<> write_text(const std::string& folder, const std::string& name, const std::string& text);

std::uint64_t bytes_in(const std::vector<Occurrence::Part>& parts);
// images/HASH.KIND
std::string image_file(const bundle::Image& image);

}  // namespace cudabpf::replay
