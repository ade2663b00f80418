// All memory of a capture that is ready to run, by the addresses that it had in the program: on the
// GPU, pinned on the host, and variables, which are elsewhere here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/gpu/code.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/gpu/memory.hpp"
#include "replay/progress.hpp"
#include "replay/ranges.hpp"

namespace cudabpf::replay {

class MemoryView {
 public:
  MemoryView(const Driver& driver, Progress& progress, GpuMemory& memory, const GpuCode& code)
      : driver_(&driver), progress_(&progress), memory_(&memory), code_(&code) {}

  Result<std::string> read(const Range& range) const;
  Result<> read(const Range& range, char* to) const;
  Result<> write(const Range& range, std::string_view bytes) const;

  // A number for each granule of all memory.
  using Fingerprints = std::vector<std::uint64_t>;
  Result<Fingerprints> fingerprints() const;
  // The granules whose numbers differ.
  std::vector<Range> changes(const Fingerprints& before, const Fingerprints& after) const;

 private:
  // Variables, memory of the host, memory of the GPU.
  std::vector<Range> spaces() const;
  bool is_on_host(const Range& range) const { return have(memory_->layout().host, range); }

  const Driver* driver_;
  Progress* progress_;
  GpuMemory* memory_;
  const GpuCode* code_;
};

Range range_of(const GpuCode::Variable& variable);

}  // namespace cudabpf::replay
