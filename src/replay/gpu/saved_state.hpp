// All that a launch may change, kept on the GPU while the launch is run more often than in the
// program.
#pragma once

#include <string>
#include <vector>

#include "replay/gpu/code.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/gpu/memory.hpp"

namespace cudabpf::replay {

class SavedState {
 public:
  SavedState(const Driver& driver, const GpuMemory& memory, const GpuCode& code)
      : driver_(&driver), memory_(&memory), code_(&code) {}

  // False: the GPU has no room for it.
  Result<bool> prepare();
  Result<> save();
  Result<> bring_back();

 private:
  Result<> copy(bool is_back);

  const Driver* driver_;
  const GpuMemory* memory_;
  const GpuCode* code_;
  DevicePtr copy_ = 0;
  std::vector<std::string> host_, variables_;
};

}  // namespace cudabpf::replay
