// Empties the GPU's L2 cache of what a program left there.
#pragma once

#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

class CacheFlush {
 public:
  explicit CacheFlush(const Driver& driver) : driver_(&driver) {}

  Result<> prepare(int device);
  // Memory is read that is twice as large as the cache. Overwriting it would do, too, but what was
  // written has to leave the cache again, and what runs next would pay for that. It is done where
  // the GPU does not take the code that reads.
  Status run(Handle stream);

 private:
  const Driver* driver_;
  Handle reader_ = nullptr;  // null: it overwrites
  std::uint32_t blocks_ = 1;
  DevicePtr memory_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace cudabpf::replay
