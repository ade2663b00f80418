// GPU errors. Each is reported twice: the driver's tracepoint says when, its line in the kernel's
// log says which process. Either may be missing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf {

class GpuErrors {
 public:
  using Emit = std::function<void(const GpuError&)>;
  explicit GpuErrors(Emit emit) : emit_(std::move(emit)) {}

  void traced(GpuError error);
  void logged(GpuError error);
  // Emits the errors that have waited long enough for their other half.
  void settle(std::uint64_t now = std::numeric_limits<std::uint64_t>::max());

 private:
  void wait(std::vector<GpuError>& errors, GpuError error);

  Emit emit_;
  std::vector<GpuError> traced_, logged_;  // those whose other half has not come yet
};

}  // namespace cudabpf
