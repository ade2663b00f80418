// The numbers of a host's processes and GPUs in a merge, which those of no other host have.
#pragma once

#include <cstdint>

#include "trace/merged.hpp"

namespace cudabpf::merge {

struct HostNumbers {
  std::uint32_t host = 0;  // from 0

  std::uint32_t process(std::uint32_t pid) const { return pid + host * PIDS_OF_HOST; }
  // A program may name devices that no machine has, in calls that fail: these stay.
  std::int64_t device(std::int64_t device) const {
    bool is_real = device >= 0 && device < DEVICES_OF_HOST;
    return is_real ? device + std::int64_t{host} * DEVICES_OF_HOST : device;
  }
};

}  // namespace cudabpf::merge
