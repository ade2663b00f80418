// What the environment requests of the simulated driver. A variable that makes no sense ends the
// process at once: a test with a misspelt function name must not pass.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "types.hpp"

namespace fake {

constexpr int kNameNowhere = -1;
constexpr uint64_t kEveryCall = 0;

struct Delay {
  int symbol;
  uint64_t nanoseconds;
};

struct Failure {
  int symbol;
  uint64_t at;  // which call, from 1, or kEveryCall
  Status status;
};

struct Hang {
  int symbol;
  uint64_t at;
  std::string until;  // this file is there; empty: for ever
};

struct DriverStatus {  // the answer to an ioctl if no driver is there to answer
  bool uvm;
  uint32_t number;
  std::optional<uint32_t> subject;  // a control, or a class
  uint32_t status;
};

struct Settings {
  std::string log_directory;                        // FAKE_CUDA_LOG
  std::string counts_directory;                     // FAKE_CUDA_COUNTS
  uint64_t memory = 16ULL << 30;                    // FAKE_CUDA_MEMORY
  int devices = 1;                                  // FAKE_CUDA_DEVICES
  int name_offset = 8;                              // FAKE_CUDA_NAME_OFFSET
  bool nest = false;                                // FAKE_CUDA_NEST
  bool compute = false;                             // FAKE_CUDA_COMPUTE
  bool driver = false;                              // FAKE_CUDA_DRIVER
  std::map<std::string, std::string> driver_paths;  // likewise; empty: the devices themselves
  std::vector<DriverStatus> driver_statuses;        // FAKE_CUDA_DRIVER_STATUS
  std::vector<Delay> delays;                        // FAKE_CUDA_LATENCY
  std::vector<Failure> failures;                    // FAKE_CUDA_FAIL
  std::vector<Hang> hangs;                          // FAKE_CUDA_HANG

  bool need_watching() const {
    return !log_directory.empty() || !counts_directory.empty() || !delays.empty() ||
           !failures.empty() || !hangs.empty() || driver || compute;
  }
};

const Settings& settings();

}  // namespace fake
