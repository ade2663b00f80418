// What a replay uses of the CUDA driver. It is opened at run time, so its types are declared here,
// as cuda.h of CUDA 12 and 13 has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "util/result.hpp"

namespace cudabpf::replay {

using DevicePtr = std::uint64_t;
using Handle = void*;  // a CUcontext, CUstream, CUevent, CUlibrary, CUkernel …

struct MemoryProperties {  // CUmemAllocationProp
  static constexpr std::uint32_t DEVICE = 1,
                                 HOST = 3;  // near a NUMA node, whose number is `device`
  std::uint32_t type = 1;                   // pinned: the only one
  std::uint32_t handle_types = 0;
  std::uint32_t location_type = DEVICE;
  std::int32_t device = 0;
  void* windows = nullptr;
  std::uint64_t flags = 0;
};
static_assert(sizeof(MemoryProperties) == 32);

struct MemoryAccess {               // CUmemAccessDesc
  std::uint32_t location_type = 1;  // a device
  std::int32_t device = 0;
  std::uint32_t flags = 3;  // to read and write
};
static_assert(sizeof(MemoryAccess) == 12);

struct PlaneCopy {  // CUDA_MEMCPY2D
  struct Side {
    std::uint64_t x = 0, y = 0;
    std::uint32_t type = 0;  // ON_HOST or ANYWHERE
    const void* host = nullptr;
    DevicePtr device = 0;
    Handle array = nullptr;
    std::uint64_t pitch = 0;
  };
  static constexpr std::uint32_t ON_HOST = 1, ANYWHERE = 4;
  Side from, to;
  std::uint64_t width = 0, height = 0;
};
static_assert(sizeof(PlaneCopy) == 128);

struct LaunchAttribute {  // CUlaunchAttribute
  std::uint32_t id = 0, padding = 0;
  unsigned char value[64]{};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {  // CUlaunchConfig
  std::uint32_t grid[3], block[3], shared;
  Handle stream;
  LaunchAttribute* attributes;
  std::uint32_t attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

// What a function of the driver returned.
struct Status {
  static constexpr int SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2;
  const char* function = "";
  int code = SUCCESS;

  bool succeeded() const { return code == SUCCESS; }
  bool is_out_of_memory() const { return code == OUT_OF_MEMORY; }
  // It has refused what it was asked for, for a reason of that alone, and is as before. Any other
  // error may come from earlier work, and stay.
  bool is_refusal() const;
  std::string text() const;  // "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (2)"
  Result<> result() const;
};

// A function of the driver: null if it has none of that name.
template <typename... Parameters>
struct DriverFunction {
  const char* name = nullptr;
  int (*address)(Parameters...) = nullptr;

  explicit operator bool() const { return address; }
  Status status_of(Parameters... arguments) const { return {name, address(arguments...)}; }
  Result<> operator()(Parameters... arguments) const { return status_of(arguments...).result(); }
};
template <typename... Parameters>
DriverFunction<Parameters...> function_of(int (*)(Parameters...));

struct Driver {
// A declaration's parts cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define DRIVER_FUNCTION(member, name, parameters) \
  decltype(function_of(static_cast<int(*) parameters>(nullptr))) member{name};
#include "replay/gpu/driver_functions.def"
#undef DRIVER_FUNCTION
  // NOLINTEND(bugprone-macro-parentheses)

  // Opens the machine's libcuda.so.1, for good. An error says what is missing.
  static Result<Driver> load();
};

}  // namespace cudabpf::replay
