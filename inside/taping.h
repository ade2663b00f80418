/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the library does where an iteration is to be captured: include/cudabpf/taping.h. */
#ifndef CUDABPF_INSIDE_TAPING_H
#define CUDABPF_INSIDE_TAPING_H

#include "inside.h"

/* The process's tape; null: nothing is captured. Nor is it in a child. */
static inline struct ci_tape* ci_tape(void) { return ci_process->tape; }

/* Maps the memory that cudabpf has sent. `path`: of libcuda, whose functions orders call. */
HIDDEN void ci_begin_taping(int fd, __u64 size, const char* path);

/* A call begins. Returns where what it was given is kept; 0: nowhere. Before that the thread may
 * have stood for long. */
HIDDEN __u64 ci_tape_enter(const struct ci_frame* frame);
HIDDEN void ci_tape_leave(const struct ci_frame* frame);

/* The library itself is calling the driver: such calls are not the program's. */
static inline bool ci_calls_itself(void) { return ci_thread.calls_itself; }

/* ----- payloads (taping.c) */

/* Room for one, whose bytes are not there yet; 0: there is none. */
HIDDEN __u64 ci_take(__u64 size, __u64 more);
static inline struct ci_payload* ci_payload(__u64 at) {
  return (struct ci_payload*)((__u8*)ci_tape() + at);
}
static inline __u8* ci_first_part(__u64 at) { return (__u8*)(ci_payload(at) + 1); }
static inline __u8* ci_second_part(__u64 at) {
  return ci_first_part(at) + CI_PADDED(ci_payload(at)->size);
}
static inline void ci_finish(__u64 at, enum ci_payload_state state) {
  __atomic_store_n(&ci_payload(at)->state, state, __ATOMIC_RELEASE);
}
/* Where a copy of both is kept; 0: there is no room for them. */
HIDDEN __u64 ci_keep_parts(const void* first, __u64 size, const void* second, __u64 more);

/* ----- copies (copies.c) */

HIDDEN bool ci_is_on_gpu(__u64 address);
/* cudabpf cannot ask what lies at an address. */
HIDDEN void ci_resolve_memory_types(struct ci_rows* rows);

/* Where a copy is kept; 0: nowhere. `sp`: of its call. */
HIDDEN __u64 ci_keep_from_host(__u64 from, __u64 size, __u64 sp);
HIDDEN __u64 ci_keep_to_host(__u64 to, __u64 size, __u64 stream); /* its bytes come later */
HIDDEN __u64 ci_keep_rows(enum ci_keep what, __u64 given, __u64 stream, __u64 sp);
/* The bytes of one to the host are there now, will be when its stream has been waited for, or are
 * there for all on this stream, or on any. */
HIDDEN void ci_fill(__u64 at);
HIDDEN void ci_fill_later(__u64 at);
HIDDEN void ci_fill_of(__u64 stream, bool for_all);

/* ----- parameters of kernels (parameters.c) */

struct ci_parameters {
  __u64 kernel, list, extra; /* as a launch is given them */
  __u64 buffer, size;        /* found: in a buffer that has all of them, or one by one */
};
/* `sp`: of the call that they were given to. False: they say nothing that is understood. */
HIDDEN bool ci_find_parameters(struct ci_parameters* parameters, __u64 sp);
/* As they lie in one buffer, of the size that was found. */
HIDDEN bool ci_read_parameters(__u8* to, const struct ci_parameters* parameters, __u64 sp);

/* ----- nodes of graphs (graphs.c) */

/* Where what the graph's nodes are given is kept; 0: nowhere. */
HIDDEN __u64 ci_keep_nodes(__u64 graph, __u64 sp);
/* The same of one, which the struct at `given` is for. */
HIDDEN __u64 ci_keep_node(enum ci_keep what, __u64 given, __u64 sp);

/* ----- orders (orders.c) */

/* The functions of the driver that are called here, and their results. */
typedef int ci_result;
/* It would nest each in the one before. */
/* clang-format off */
#define CI_GRAPH_FUNCTIONS(of) \
  of(cuGraphChildGraphNodeGetGraph, (__u64 node, __u64* graph)) \
  of(cuGraphEventRecordNodeGetEvent, (__u64 node, void* event)) \
  of(cuGraphEventWaitNodeGetEvent, (__u64 node, void* event)) \
  of(cuGraphGetEdges, (__u64 graph, __u64* from, __u64* to, size_t* count)) \
  of(cuGraphGetEdges_v2, (__u64 graph, __u64* from, __u64* to, void* data, size_t* count)) \
  of(cuGraphGetNodes, (__u64 graph, __u64* nodes, size_t* count)) \
  of(cuGraphKernelNodeGetAttribute, (__u64 node, int attribute, void* value)) \
  of(cuGraphKernelNodeGetParams_v2, (__u64 node, void* given)) \
  of(cuGraphMemcpyNodeGetParams, (__u64 node, void* given)) \
  of(cuGraphMemsetNodeGetParams, (__u64 node, void* given)) \
  of(cuGraphNodeGetType, (__u64 node, __u32* type))
#define CI_DRIVER_FUNCTIONS(of) \
  of(cuCtxGetDevice, (int* device)) \
  of(cuCtxGetLimit, (size_t* value, int limit)) \
  of(cuCtxSynchronize, (void)) \
  of(cuDeviceGetAttribute, (int* value, int attribute, int device)) \
  of(cuDeviceGetName, (char* name, int size, int device)) \
  of(cuDeviceGetUuid_v2, (__u8* uuid, int device)) \
  of(cuDeviceTotalMem_v2, (size_t* size, int device)) \
  of(cuFuncGetAttribute, (int* value, int attribute, __u64 function)) \
  of(cuFuncGetModule, (__u64* module, __u64 function)) \
  of(cuFuncGetName, (const char** name, __u64 function)) \
  of(cuFuncGetParamInfo, (__u64 function, size_t at, size_t* offset, size_t* size)) \
  of(cuKernelGetAttribute, (int* value, int attribute, __u64 kernel, int device)) \
  of(cuKernelGetLibrary, (__u64* library, __u64 kernel)) \
  of(cuKernelGetName, (const char** name, __u64 kernel)) \
  of(cuKernelGetParamInfo, (__u64 kernel, size_t at, size_t* offset, size_t* size)) \
  of(cuLibraryGetModule, (__u64* module, __u64 library)) \
  of(cuLibraryGetGlobal, (__u64* address, size_t* size, __u64 library, const char* name)) \
  of(cuMemcpyDtoH_v2, (void* to, __u64 from, size_t size)) \
  of(cuMemHostRegister_v2, (void* at, size_t size, unsigned flags)) \
  of(cuMemHostUnregister, (void* at)) \
  of(cuModuleGetGlobal_v2, (__u64* address, size_t* size, __u64 module, const char* name)) \
  of(cuPointerGetAttribute, (void* value, int attribute, __u64 pointer)) \
  of(cuStreamQuery, (__u64 stream))
/* clang-format on */

struct ci_driver_functions {
#define DECLARE(name, parameters) ci_result(*name) parameters;
  CI_DRIVER_FUNCTIONS(DECLARE) CI_GRAPH_FUNCTIONS(DECLARE)
#undef DECLARE
};
extern HIDDEN struct ci_driver_functions ci_cuda; /* those that are not there are null */
HIDDEN void ci_find_driver_functions(const char* path);

/* Offset and size of a kernel's parameter, by its handle. False: it has no more. */
HIDDEN bool ci_parameter(__u64 kernel, size_t at, size_t* offset, size_t* size);

struct ci_stop { /* at which launch the library stops next */
  __u64 after;   /* launches that are to come, with it; 0: it stops at none */
  __u32 tid;     /* of this thread; 0: of any */
  __u32 at_wait; /* then at the first before which it has waited for the GPU */
  __u32 waited;  /* whether it has, since its last launch */
};
/* The thread stands at a launch, and does what it is ordered to until it may go on. */
HIDDEN struct ci_stop ci_take_orders(void);

/* A connection with cudabpf (process.c), or a negative number. */
HIDDEN long ci_connect(unsigned patience_s);
HIDDEN bool ci_send(long fd, const void* data, size_t size);

#endif
