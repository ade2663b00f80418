// Errors of GPUs, each told twice: the driver's tracepoint tells when, its line in the kernel's log
// whose process it was. Either may be missing.
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
  // Emits those for whose other half it has been waited long enough.
  void settle(std::uint64_t now = std::numeric_limits<std::uint64_t>::max());

 private:
  void wait(std::vector<GpuError>& errors, GpuError error);

  Emit emit_;
  std::vector<GpuError> traced_, logged_;  // whose other half has not come
};

}  // namespace cudabpf
