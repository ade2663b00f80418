// The types of the driver API that the simulated driver needs.
#pragma once

#include <cstdint>

namespace fake {

using Status = uint32_t;  // CUresult
using DevicePtr = uint64_t;
using Handle = void*;  // CUstream, CUmodule and every other opaque pointer

template <int N>
struct Bytes {  // a struct passed by value on the stack
  unsigned char bytes[N];
};

enum : Status {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kContextAlreadyInUse = 216,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kStreamCaptureUnsupported = 900,
  kUnknown = 999,
};

struct LaunchConfig {  // CUlaunchConfig
  uint32_t grid[3], block[3], shared;
  Handle stream;
  void* attributes;
  uint32_t attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

struct KernelNodeParams {  // CUDA_KERNEL_NODE_PARAMS_v2
  Handle function;
  uint32_t grid[3], block[3], shared;
  void** parameters;
  void** extra;
  Handle kernel;
  Handle context;
};
static_assert(sizeof(KernelNodeParams) == 72);

struct Memcpy2D {  // CUDA_MEMCPY2D_v2
  uint64_t src_x, src_y;
  uint32_t src_type;
  void* src_host;
  DevicePtr src_device;
  Handle src_array;
  uint64_t src_pitch;
  uint64_t dst_x, dst_y;
  uint32_t dst_type;
  void* dst_host;
  DevicePtr dst_device;
  Handle dst_array;
  uint64_t dst_pitch;
  uint64_t width, height;
};
static_assert(sizeof(Memcpy2D) == 128);

struct Memcpy3D {  // CUDA_MEMCPY3D_v2; CUDA_MEMCPY3D_PEER has contexts in the reserved words
  uint64_t src_x, src_y, src_z, src_lod;
  uint32_t src_type;
  void* src_host;
  DevicePtr src_device;
  Handle src_array;
  Handle src_context;
  uint64_t src_pitch, src_height;
  uint64_t dst_x, dst_y, dst_z, dst_lod;
  uint32_t dst_type;
  void* dst_host;
  DevicePtr dst_device;
  Handle dst_array;
  Handle dst_context;
  uint64_t dst_pitch, dst_height;
  uint64_t width, height, depth;
};
static_assert(sizeof(Memcpy3D) == 200);

}  // namespace fake
