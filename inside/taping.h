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

/* ----- orders (orders.c) */

/* The functions of the driver that orders call, and their results. */
typedef int ci_result;
#define CI_DRIVER_FUNCTIONS(of)                                                                   \
  of(cuCtxGetDevice, (int* device)) of(cuCtxGetLimit, (size_t * value, int limit)) of(            \
      cuCtxSynchronize, (void)) of(cuDeviceGetAttribute, (int* value, int attribute, int device)) \
      of(cuDeviceGetName, (char* name, int size, int device))                                     \
          of(cuDeviceGetUuid_v2, (__u8 * uuid, int device)) of(                                   \
              cuDeviceTotalMem_v2, (size_t * size, int device)) of(cuDriverGetVersion,            \
                                                                   (int* version))                \
              of(cuFuncGetAttribute, (int* value, int attribute, __u64 function)) of(             \
                  cuFuncGetModule, (__u64 * module, __u64 function))                              \
                  of(cuFuncGetName, (const char** name, __u64 function)) of(                      \
                      cuFuncGetParamInfo,                                                         \
                      (__u64 function, size_t at, size_t * offset, size_t * size))                \
                      of(cuKernelGetAttribute,                                                    \
                         (int* value, int attribute, __u64 kernel, int device))                   \
                          of(cuKernelGetLibrary, (__u64 * library, __u64 kernel))                 \
                              of(cuKernelGetName, (const char** name, __u64 kernel)) of(          \
                                  cuKernelGetParamInfo,                                           \
                                  (__u64 kernel, size_t at, size_t * offset, size_t * size))      \
                                  of(cuLibraryGetGlobal, (__u64 * address, size_t * size,         \
                                                          __u64 library, const char* name))       \
                                      of(cuMemcpyDtoH_v2, (void* to, __u64 from, size_t size))    \
                                          of(cuMemHostRegister_v2,                                \
                                             (void* at, size_t size, unsigned flags))             \
                                              of(cuMemHostUnregister, (void* at)) of(             \
                                                  cuModuleGetGlobal_v2,                           \
                                                  (__u64 * address, size_t * size, __u64 module,  \
                                                   const char* name))                             \
                                                  of(cuPointerGetAttribute,                       \
                                                     (void* value, int attribute, __u64 pointer)) \
                                                      of(cuStreamQuery, (__u64 stream))

struct ci_driver_functions {
#define DECLARE(name, parameters) ci_result(*name) parameters;
  CI_DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE
};
extern HIDDEN struct ci_driver_functions ci_cuda; /* those that are not there are null */
HIDDEN void ci_find_driver_functions(const char* path);

/* Offset and size of a kernel's parameter, by its handle. False: it has no more. */
HIDDEN bool ci_parameter(__u64 kernel, size_t at, size_t* offset, size_t* size);

struct ci_stop { /* at which launch the library stops next */
  __u64 after;   /* launches that are to come, with it; 0: it stops at none */
  __u64 handle;  /* of this kernel or graph; 0: of any */
  __u32 tid;     /* of this thread; 0: of any */
};
/* The thread stands at a launch, and does what it is ordered to until it may go on. */
HIDDEN struct ci_stop ci_take_orders(void);

/* A connection with cudabpf (process.c), or a negative number. */
HIDDEN long ci_connect(unsigned patience_s);
HIDDEN bool ci_send(long fd, const void* data, size_t size);

#endif
