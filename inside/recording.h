/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every record begins with: whether there is to be one, and its head. */
#ifndef CUDABPF_INSIDE_RECORDING_H
#define CUDABPF_INSIDE_RECORDING_H

#include <time.h>

#include "ring.h"

static inline __u64 ci_monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (__u64)time.tv_sec * 1000000000ULL + (__u64)time.tv_nsec;
}

/* The time by the shared memory's clock. Earlier instructions need not have finished, since waiting
 * for them would cost more than the counter: a time may be some 10 ns early. */
static inline __u64 ci_now(void) {
  if (ci_process->shared->clock == CI_TICKS) return __builtin_ia32_rdtsc();
  return ci_monotonic();
}

/* The thread, if what begins (`least`: CI_ALL) or ends (CI_RETURNS) is recorded. */
static inline struct ci_thread* ci_recording_thread(enum ci_on least, enum cb_counter lost) {
  struct ci_process* process = ci_process;
  if (unlikely(ci_state() != CI_TRACED) && !ci_process_is_traced()) return NULL;
  if (unlikely(__atomic_load_n(&process->shared->on, __ATOMIC_RELAXED) < least)) return NULL;
  struct ci_thread* thread = &ci_thread;
  if (unlikely(!thread->ring || thread->generation != process->generation) &&
      !ci_take_ring(thread, lost))
    return NULL;
  return thread;
}

/* A thread's time never goes back, whatever the processor executes first; but a counter that has
 * restarted is believed. */
static inline void ci_fill_head(struct cb_head* head, struct ci_thread* thread, __u8 kind,
                                __u64 ts) {
  const __u64 out_of_order = 1 << 16;
  if (likely(ts > thread->now) || thread->now - ts > out_of_order) thread->now = ts;
  head->pid = ci_process->pid;
  head->tid = thread->tid;
  head->drops = thread->ring->drops;
  head->kind = kind;
  head->flags = 0;
  head->result = 0;
  head->ts = thread->now;
}

#endif
