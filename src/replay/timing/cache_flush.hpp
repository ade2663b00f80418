// Empties the GPU's caches of what a program left there.
#pragma once

#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

class CacheFlush {
 public:
  explicit CacheFlush(const Driver& driver) : driver_(&driver) {}

  Result<> prepare(int device);
  // The L2 cache: memory is read that is twice as large. Overwriting it would do, too, but what was
  // written has to leave the cache again, and what runs next would pay for that. It is done where
  // the GPU does not take the code that reads.
  Status run(Handle stream);
  // Also the caches of code, by running more than they hold.
  Status run_all(Handle stream);

 private:
  // Null: the driver does not take the code.
  Handle function_of(const char* code, const char* name);

  const Driver* driver_;
  Handle reader_ = nullptr;  // null: it overwrites
  Handle other_code_ = nullptr;
  std::uint32_t multiprocessors_ = 1;
  DevicePtr memory_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace cudabpf::replay
