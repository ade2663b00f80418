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
  kInvalidImage = 200,
  kInvalidContext = 201,
  kContextAlreadyInUse = 216,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kIllegalAddress = 700,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureMerge = 902,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureUnjoined = 904,
  kStreamCaptureIsolation = 905,
  kStreamCaptureWrongThread = 908,
  kGraphExecUpdateFailure = 910,
  kClusterMisconfiguration = 912,
  kUnknown = 999,
};

struct LaunchConfig {  // CUlaunchConfig
  uint32_t grid[3], block[3], shared;
  Handle stream;
  void* attributes;
  uint32_t attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

struct LaunchAttribute {  // CUlaunchAttribute
  uint32_t id, padding;
  unsigned char value[64];
};
static_assert(sizeof(LaunchAttribute) == 72);
constexpr uint32_t kClusterDimension = 4;  // an id of them

struct KernelNodeParams {  // CUDA_KERNEL_NODE_PARAMS_v2
  Handle function;
  uint32_t grid[3], block[3], shared;
  void** parameters;
  void** extra;
  Handle kernel;
  Handle context;
};
static_assert(sizeof(KernelNodeParams) == 72);

enum : uint32_t { kOnHost = 1, kOnDevice = 2, kArray = 3, kUnified = 4 };  // CUmemorytype

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

struct MemsetNodeParams {  // CUDA_MEMSET_NODE_PARAMS; _v2 has a context behind it
  DevicePtr to;
  uint64_t pitch;
  uint32_t value, element_size;
  uint64_t width, height;
};
static_assert(sizeof(MemsetNodeParams) == 40);

struct AllocNodeParams {  // CUDA_MEM_ALLOC_NODE_PARAMS
  unsigned char pool_properties[88];
  void* access;
  uint64_t access_count, size;
  DevicePtr pointer;  // out
};
static_assert(sizeof(AllocNodeParams) == 120);

struct HostNodeParams {  // CUDA_HOST_NODE_PARAMS
  void* function;
  void* data;
};

struct ConditionalNodeParams {  // CUDA_CONDITIONAL_NODE_PARAMS
  uint64_t handle;
  uint32_t type, count;  // if, while or switch; how many bodies
  Handle* bodies;        // out
  Handle context;
};

enum : uint32_t {  // CUgraphNodeType
  kKernelNode = 0,
  kMemcpyNode = 1,
  kMemsetNode = 2,
  kHostNode = 3,
  kChildGraphNode = 4,
  kEmptyNode = 5,
  kWaitNode = 6,    // for an event
  kRecordNode = 7,  // of one
  kSignalOutsideNode = 8,
  kWaitOutsideNode = 9,
  kAllocNode = 10,
  kFreeNode = 11,
  kMemoryOperationsNode = 12,
  kConditionalNode = 13,
};

struct GraphNodeParams {  // CUgraphNodeParams
  uint32_t type, reserved[3];
  union {
    KernelNodeParams kernel;
    struct {
      uint32_t flags, reserved;
      Handle context;
      Memcpy3D copy;
    } copy;
    MemsetNodeParams set;
    HostNodeParams host;
    Handle child;
    AllocNodeParams alloc;
    DevicePtr freed;
    ConditionalNodeParams conditional;
    unsigned char bytes[232];
  };
  uint64_t reserved_at_end;
};
static_assert(sizeof(GraphNodeParams) == 256);

}  // namespace fake
