// CUPTI's records, declared after cupti_activity.h of CUDA 13.0, apart from what inside/cupti.h
// says of them, so that a wrong layout there shows.
#pragma once

#include <cstdint>

namespace fake {

#pragma pack(push, 1)
struct alignas(8) KernelRecord {  // CUpti_ActivityKernel9
  uint32_t kind;
  uint8_t cacheConfig;
  uint8_t sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested, partitionedGlobalCacheExecuted;
  uint64_t start, end, completed;
  uint32_t deviceId, contextId, streamId;
  int32_t gridX, gridY, gridZ, blockX, blockY, blockZ;
  int32_t staticSharedMemory, dynamicSharedMemory;
  uint32_t localMemoryPerThread, localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char* name;
  void* reserved0;
  uint64_t queued, submitted;
  uint8_t launchType, isSharedMemoryCarveoutRequested, sharedMemoryCarveoutRequested, padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t shmemLimitConfig;
  uint32_t graphId;
  void* pAccessPolicyWindow;
  uint32_t channelID, channelType;
  uint32_t clusterX, clusterY, clusterZ, clusterSchedulingPolicy;
  uint64_t localMemoryTotal_v2;
  uint32_t maxPotentialClusterSize, maxActiveClusters;
};

struct alignas(8) CopyRecord {  // CUpti_ActivityMemcpy5
  uint32_t kind;
  uint8_t copyKind, srcKind, dstKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId, runtimeCorrelationId, pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId, channelID, channelType, pad2;
};

struct alignas(8) FillRecord {  // CUpti_ActivityMemset4
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId;
  uint16_t flags, memoryKind;
  uint32_t pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId, channelID, channelType, pad2;
};

struct GraphRecord {  // CUpti_ActivityGraphTrace
  uint32_t kind, correlationId;
  uint64_t start, end;
  uint32_t deviceId, graphId, contextId, streamId;
  void* reserved;
};
#pragma pack(pop)

enum Kind : uint32_t {
  MEMCPY = 1,
  MEMSET = 2,
  CONCURRENT_KERNEL = 10,
  MEMCPY2 = 22,
  GRAPH_TRACE = 51,
};
enum Attribute {
  DEVICE_BUFFER_POOL_LIMIT = 2,
  ZEROED_OUT_ACTIVITY_BUFFER = 5,
  PER_THREAD_ACTIVITY_BUFFER = 9
};
enum Result {
  SUCCESS = 0,
  INVALID_PARAMETER = 1,
  MAX_LIMIT_REACHED = 12,
  MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
};

}  // namespace fake
