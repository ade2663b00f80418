/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When GPUs worked: what those who ask CUPTI for it share. */
#ifndef CUDABPF_INSIDE_GPU_H
#define CUDABPF_INSIDE_GPU_H

#include <time.h>

#include "cupti.h"

extern HIDDEN struct cupti ci_cupti;

static inline __u64 ci_monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (__u64)time.tv_sec * 1000000000ULL + (__u64)time.tv_nsec;
}

/* ----- buffers that CUPTI fills (gpu_buffers.c) */

struct ci_gpu_buffer {
  struct ci_gpu_buffer* next;
  __u64 since; /* when its lane began */
  __u64 lost;  /* works that CUPTI had no place for */
  size_t filled;
  __u32 thread, lane, batch;
  __u8 data[] __attribute__((aligned(16)));
};

HIDDEN void ci_own_gpu_buffers(void); /* this process, and none of its children */
HIDDEN bool ci_owns_gpu_buffers(void);
/* What CUPTI calls for an empty one, and with one that it has filled. */
HIDDEN void ci_give_gpu_buffer(__u8** data, size_t* size, size_t* most);
HIDDEN void ci_take_gpu_buffer(void* context, __u32 stream, __u8* data, size_t size, size_t filled);
/* The one that has been full for longest; null: none is. */
HIDDEN struct ci_gpu_buffer* ci_full_gpu_buffer(void);
HIDDEN void ci_wait_for_gpu_buffer(__u64 ns);
HIDDEN void ci_reuse_gpu_buffer(struct ci_gpu_buffer* buffer);
HIDDEN void ci_refuse_gpu_buffers(void); /* from now on nobody wants to know what is in them */

/* ----- what is in them (gpu_works.c) */

HIDDEN void ci_fill_gpu_head(struct cb_head* head, struct ci_thread* thread, __u8 kind);
/* Makes records of it in the ring of this thread, which may wait for cudabpf to read. */
HIDDEN void ci_tell_gpu_works(const struct ci_gpu_buffer* buffer);

#endif
