// Which processes have the GPUs: reads the driver's records of context switches. Opening it takes
// root; once open, it can be read without rights.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collect/gpu/residency.hpp"
#include "collect/gpu/rm_client.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf {

// This part of the driver has no version of its own: it is only used with versions that were tried.
struct LoadedDriver {
  std::string_view version;
  bool is_open = false;  // the open kernel module
};

class SwitchReader {
 public:
  // Everything older than this has been recorded.
  static constexpr std::chrono::nanoseconds SETTLED = std::chrono::milliseconds(1);

  // Begins to record, on all GPUs that this process may use. An error says why it cannot be.
  static Result<std::unique_ptr<SwitchReader>> open(const rm::System& system,
                                                    const LoadedDriver& driver);
  ~SwitchReader();

  // Reads what the driver has recorded. Must be called often, for the driver keeps a limited
  // number. After an error nothing can be read any more. `own_pids`: the driver's pids are not
  // those seen here.
  Result<> follow(bool own_pids);

  struct Taken {
    GpuResidents residents;     // ns on CLOCK_MONOTONIC
    std::uint64_t missing = 0;  // records
  };
  // The processes that had the GPU at this PCI address (as NVML writes it) from the last call of
  // this function until shortly before the last call of follow(). Nothing: the GPU is not followed.
  std::optional<Taken> take(std::string_view bus_id);

 private:
  struct Clock {
    std::uint64_t gpu = 0, monotonic = 0;  // the same moment
  };
  struct Gpu;

  SwitchReader() = default;
  Result<std::unique_ptr<Gpu>> open_gpu(const rm::Card& card);
  Result<Clock> clock_of(const Gpu& gpu);
  Result<> drain(Gpu& gpu);

  std::unique_ptr<rm::Client> client_;
  std::vector<std::unique_ptr<Gpu>> gpus_;  // before the client: they are its objects
};

}  // namespace cudabpf
