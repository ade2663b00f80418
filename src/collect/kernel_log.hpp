// The kernel's log, where the NVIDIA driver tells of GPUs' errors.
#pragma once

#include <vector>

#include "cudabpf/event.hpp"
#include "util/fd.hpp"
#include "util/result.hpp"

namespace cudabpf {

class KernelLog {
 public:
  // What is logged from now on.
  static Result<KernelLog> open();

  int fd() const { return fd_.get(); }  // readable when there is more
  std::vector<GpuError> read_errors();

 private:
  explicit KernelLog(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace cudabpf
