/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The part of CUPTI that is used, NVIDIA's library that knows when GPUs were busy. It is loaded
 * into the traced process at run time, so the build needs nothing of it. Layouts and numbers are
 * those of CUDA 12.3 to 13.0, whose records all begin alike; each record's kind says what it is.
 */
#ifndef CUDABPF_INSIDE_CUPTI_H
#define CUDABPF_INSIDE_CUPTI_H

#include "inside.h"

#define CUPTI_SUCCESS 0

enum cupti_kind {
  CUPTI_KIND_MEMCPY = 1,
  CUPTI_KIND_MEMSET = 2,
  CUPTI_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_KIND_MEMCPY2 = 22, /* between two GPUs */
  CUPTI_KIND_GRAPH_TRACE = 51,
};

enum cupti_attribute {
  CUPTI_DEVICE_BUFFER_POOL_LIMIT = 2,
  CUPTI_ZEROED_OUT_BUFFER = 5,
  CUPTI_PER_THREAD_BUFFER = 9,
};

#define CUPTI_FLUSH_FORCED 1

/* From 13.0 on, versions are 130001 for 13.0.1; before, they count up. */
#define CUPTI_12_3 21
#define CUPTI_13_0_1 130001

struct cupti_kernel {
  __u32 kind;
  __u8 cache, shared_config;
  __u16 registers;
  __u32 partitioned[2];
  __u64 start, end, completed;
  __u32 device, context, stream;
  __u32 grid[3], block[3];
  __u32 static_shared, dynamic_shared;
  __u32 local_per_thread, local_total;
  __u32 correlation;
  __u64 grid_id;
  const char* name;
  void* reserved;
  __u64 queued, submitted;
  __u8 launch[4];
  __u32 shared_executed;
  __u64 graph_node;
  __u32 shared_limit;
  __u32 graph;
};

struct cupti_copy {
  __u32 kind;
  __u8 direction, from, to, flags;
  __u64 bytes, start, end;
  __u32 device, context, stream;
  __u32 correlation, runtime_correlation;
  __u32 padding;
  void* reserved;
  __u64 graph_node;
  __u32 graph;
};

struct cupti_peer_copy {
  __u32 kind;
  __u8 direction, from, to, flags;
  __u64 bytes, start, end;
  __u32 device, context, stream;
  __u32 from_device, from_context, to_device, to_context;
  __u32 correlation;
  void* reserved;
  __u64 graph_node;
  __u32 graph;
};

struct cupti_fill {
  __u32 kind;
  __u32 value;
  __u64 bytes, start, end;
  __u32 device, context, stream;
  __u32 correlation;
  __u16 flags, memory;
  __u32 padding;
  void* reserved;
  __u64 graph_node;
  __u32 graph;
};

struct cupti_graph {
  __u32 kind;
  __u32 correlation;
  __u64 start, end;
  __u32 device, graph, context, stream;
};

CB_STATIC_ASSERT(offsetof(struct cupti_kernel, start) == 16 &&
                     offsetof(struct cupti_kernel, correlation) == 92 &&
                     offsetof(struct cupti_kernel, name) == 104 &&
                     offsetof(struct cupti_kernel, graph_node) == 144 &&
                     offsetof(struct cupti_kernel, graph) == 156,
                 "CUpti_ActivityKernel9");
CB_STATIC_ASSERT(offsetof(struct cupti_copy, bytes) == 8 &&
                     offsetof(struct cupti_copy, correlation) == 44 &&
                     offsetof(struct cupti_copy, graph_node) == 64,
                 "CUpti_ActivityMemcpy5");
CB_STATIC_ASSERT(offsetof(struct cupti_peer_copy, correlation) == 60 &&
                     offsetof(struct cupti_peer_copy, graph_node) == 72,
                 "CUpti_ActivityMemcpyPtoP4");
CB_STATIC_ASSERT(offsetof(struct cupti_fill, correlation) == 44 &&
                     offsetof(struct cupti_fill, graph_node) == 64,
                 "CUpti_ActivityMemset4");
CB_STATIC_ASSERT(offsetof(struct cupti_graph, stream) == 36, "CUpti_ActivityGraphTrace");

typedef void (*cupti_give)(__u8** buffer, size_t* size, size_t* most);
typedef void (*cupti_take)(void* context, __u32 stream, __u8* buffer, size_t size, size_t filled);

/* Its functions: FUNCTION(name, parameters). All return a CUptiResult. */
#define CUPTI_FUNCTIONS(FUNCTION)                                              \
  FUNCTION(GetVersion, (__u32 * version))                                      \
  FUNCTION(GetResultString, (int result, const char** text))                   \
  FUNCTION(GetTimestamp, (__u64 * ns))                                         \
  FUNCTION(Subscribe, (void** subscriber, void* callback, void* data))         \
  FUNCTION(Unsubscribe, (void* subscriber))                                    \
  FUNCTION(ActivitySetAttribute, (int name, size_t* size, void* value))        \
  FUNCTION(ActivityRegisterCallbacks, (cupti_give give, cupti_take take))      \
  FUNCTION(ActivityEnable, (int kind))                                         \
  FUNCTION(ActivityDisable, (int kind))                                        \
  FUNCTION(ActivityFlushAll, (__u32 flag))                                     \
  FUNCTION(ActivityGetNextRecord, (__u8 * buffer, size_t size, void** record)) \
  FUNCTION(ActivityGetNumDroppedRecords, (void* context, __u32 stream, size_t* count))

struct cupti {
#define POINTER(name, parameters) int(*name) parameters;
  CUPTI_FUNCTIONS(POINTER)
#undef POINTER
  char path[4096];
};

extern HIDDEN struct cupti ci_cupti; /* the one that ci_load_cupti() has found */

/* Finds one and fills in its functions. False: there is none; `why` says so. */
HIDDEN bool ci_load_cupti(const char** why);

#endif
