/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Buffers that CUPTI fills with records of GPU operations. */
#ifndef CUDABPF_INSIDE_GPU_BUFFERS_H
#define CUDABPF_INSIDE_GPU_BUFFERS_H

#include "inside.h"

struct ci_gpu_buffer {
  struct ci_gpu_buffer* next;
  __u64 since; /* when its lane began */
  __u64 asked; /* when its thread asked for it */
  __u64 lost;  /* operations that CUPTI had no room for */
  size_t filled;
  __u32 thread, lane, batch;
  __u8 data[] __attribute__((aligned(16)));
};

HIDDEN void ci_own_gpu_buffers(void); /* this process, and none of its children */
HIDDEN bool ci_owns_gpu_buffers(void);
/* CUPTI calls this for an empty buffer. */
HIDDEN void ci_give_gpu_buffer(__u8** data, size_t* size, size_t* most);
/* Queues a buffer that CUPTI has filled, or returns it if the queue is full. */
HIDDEN struct ci_gpu_buffer* ci_queue_gpu_buffer(__u8* data, size_t size, size_t filled,
                                                 __u64 lost);
/* The buffer that has been full for longest; null: there is none. */
HIDDEN struct ci_gpu_buffer* ci_full_gpu_buffer(void);
HIDDEN void ci_wait_for_gpu_buffer(__u64 ns);
HIDDEN void ci_reuse_gpu_buffer(struct ci_gpu_buffer* buffer);
HIDDEN void ci_refuse_gpu_buffers(void); /* from now on their contents are not wanted */

#endif
