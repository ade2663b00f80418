// The kernel's log, where the NVIDIA driver reports GPU errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cudabpf/event.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// What a record says of a GPU's error: "6,1234,5678901,-;text\n", then lines that begin with a
// blank. Pure.
std::optional<GpuError> error_in_record(std::string_view record);

class KernelLog {
 public:
  // Reads what is logged from now on.
  static Result<KernelLog> open();

  int fd() const { return fd_.get(); }  // readable when there is more
  // Increments `overruns` if lines were overwritten before they were read.
  std::vector<GpuError> read_errors(std::uint64_t& overruns);

 private:
  explicit KernelLog(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace cudabpf
