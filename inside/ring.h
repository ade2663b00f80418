/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a thread writes records to its ring. It never waits: a record that does not fit is counted.
 */
#ifndef CUDABPF_INSIDE_RING_H
#define CUDABPF_INSIDE_RING_H

#include "inside.h"

/* One instruction, so that a signal's handler that counts as well does no harm. */
static inline void ci_count(__u64* counter) { __asm__ volatile("incq %0" : "+m"(*counter)); }

static inline __u64 ci_padded(__u64 size) { return (size + 7) & ~7ULL; }

static inline void ci_lose(struct ci_thread* thread, enum cb_counter kind) {
  ci_count(&thread->ring->counters[kind]);
  __asm__ volatile("incl %0" : "+m"(thread->ring->drops));
}

/* A signal's handler may run between any two instructions, but sees this in order. */
static inline void ci_set_busy(struct ci_thread* thread, bool busy) {
  __asm__ volatile("" ::: "memory");
  thread->busy = busy;
  __asm__ volatile("" ::: "memory");
}

/* The place of a record of at most `size` bytes; null: it is lost. The next call of ci_commit()
 * belongs to it. */
static inline void* ci_reserve(struct ci_thread* thread, __u32 size, enum cb_counter lost) {
  struct ci_ring* ring = thread->ring;
  ci_count(&ring->counters[CB_ENTERED]);
  if (unlikely(thread->busy)) {
    ci_lose(thread, lost);
    return NULL;
  }
  ci_set_busy(thread, true);
  __u64 at = thread->head & (thread->size - 1), left = thread->size - at;
  __u64 needed = sizeof(struct ci_slot) + ci_padded(size);
  __u64 skipped = needed > left ? left : 0;
  if (unlikely(thread->head + skipped + needed - thread->tail > thread->size)) {
    thread->tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    if (thread->head + skipped + needed - thread->tail > thread->size) {
      ci_lose(thread, lost);
      ci_set_busy(thread, false);
      return NULL;
    }
  }
  if (unlikely(skipped)) {
    *(struct ci_slot*)(thread->data + at) = (struct ci_slot){.skip = 1};
    thread->head += skipped;
    at = 0;
  }
  return thread->data + at + sizeof(struct ci_slot);
}

static inline void ci_commit(struct ci_thread* thread, __u32 size) {
  __u64 at = thread->head & (thread->size - 1);
  *(struct ci_slot*)(thread->data + at) = (struct ci_slot){.size = size};
  thread->head += sizeof(struct ci_slot) + ci_padded(size);
  __atomic_store_n(&thread->ring->head, thread->head, __ATOMIC_RELEASE);
  ci_count(&thread->ring->counters[CB_EMITTED]);
  ci_set_busy(thread, false);
}

/* The place of the next call's records comes near while the program goes on: it was last touched by
 * the processor that cudabpf reads on. */
static inline void ci_fetch_next(const struct ci_thread* thread) {
  const __u64 line = 64, usual = 4; /* lines that a call's records take */
  for (__u64 i = 0; i < usual; i++)
    __asm__ volatile("prefetchw %0"
                     :
                     : "m"(thread->data[(thread->head + i * line) & (thread->size - 1)]));
}

#endif
