/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A ring for each thread: taken at its first call, given back when it ends. */
#include "ring.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

OLD_VERSION(pthread_key_create);
OLD_VERSION(pthread_setspecific);

_Thread_local struct ci_thread ci_thread __attribute__((tls_model("initial-exec")));

static pthread_key_t ending;
static bool watched;

/* The thread ends, or one of its other keys' destructors makes calls afterwards: then it takes a
 * ring again, and comes here again. */
static void thread_ends(void* of) {
  struct ci_thread* thread = of;
  struct ci_ring* ring = thread->ring;
  thread->ring = NULL;
  if (ring && ci_process->shared && thread->generation == ci_process->generation)
    __atomic_store_n(&ring->state, CI_LEFT, __ATOMIC_RELEASE);
}

void ci_watch_threads(void) {
  if (!watched) watched = pthread_key_create(&ending, thread_ends) == 0;
}

static void lose_without_ring(enum cb_counter lost) {
  struct ci_shared* shared = ci_process->shared;
  __atomic_fetch_add(&shared->counters[CB_ENTERED], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&shared->counters[lost], 1, __ATOMIC_RELAXED);
}

/* Rings before this one may hold records. */
static void note_used(struct ci_shared* shared, __u32 rings) {
  __u32 used = __atomic_load_n(&shared->used, __ATOMIC_RELAXED);
  while (used < rings && !__atomic_compare_exchange_n(&shared->used, &used, rings, false,
                                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

/* cudabpf has not read for long: it is gone, and frees no rings that threads leave any more. */
static bool is_unread(const struct ci_shared* shared) {
  const __u64 long_ago = 30; /* seconds */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  __u32 reads = __atomic_load_n(&shared->reads, __ATOMIC_RELAXED);
  __u64 at = __atomic_load_n(&ci_process->reads_at, __ATOMIC_RELAXED);
  if (!at || reads != __atomic_load_n(&ci_process->reads, __ATOMIC_RELAXED)) {
    at = (__u64)now.tv_sec;
    __atomic_store_n(&ci_process->reads_at, at, __ATOMIC_RELAXED);
    __atomic_store_n(&ci_process->reads, reads, __ATOMIC_RELAXED);
  }
  return (__u64)now.tv_sec > at + long_ago;
}

/* The accessible rings are the first; if two threads make the next two accessible at once, one may
 * have to be done again, which does no harm. */
static bool make_accessible(__u8* data, __u32 number) {
  __u32* rings = &ci_process->rings;
  if (number < __atomic_load_n(rings, __ATOMIC_ACQUIRE)) return true;
  if (ci_system(SYS_mprotect, (long)data, (long)ci_process->ring_size, PROT_READ | PROT_WRITE, 0, 0,
                0) != 0)
    return false;
  __u32 before = number;
  __atomic_compare_exchange_n(rings, &before, number + 1, false, __ATOMIC_RELEASE,
                              __ATOMIC_RELAXED);
  return true;
}

bool ci_take_ring(struct ci_thread* thread, enum cb_counter lost) {
  struct ci_shared* shared = ci_process->shared;
  struct ci_ring* rings = (struct ci_ring*)(shared + 1);
  /* Busy without a ring: a signal's handler came while this thread was taking one. */
  if (thread->busy && thread->generation == ci_process->generation) {
    lose_without_ring(lost);
    return false;
  }
  thread->generation = ci_process->generation;
  thread->ring = NULL;
  ci_set_busy(thread, true);
  __u32 count = is_unread(shared) ? 0 : CI_RINGS;
  for (__u32 number = 0; number < count; number++) {
    struct ci_ring* ring = &rings[number];
    __u32 free = CI_FREE;
    if (__atomic_load_n(&ring->state, __ATOMIC_RELAXED) != CI_FREE) continue;
    if (!__atomic_compare_exchange_n(&ring->state, &free, CI_USED, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
      continue;
    thread->size = ci_process->ring_size;
    thread->data = (__u8*)shared + CI_RINGS_AT + (size_t)number * thread->size;
    if (!make_accessible(thread->data, number)) {
      __atomic_store_n(&ring->state, CI_FREE, __ATOMIC_RELEASE);
      break;
    }
    thread->tid = (__u32)ci_system(SYS_gettid, 0, 0, 0, 0, 0, 0);
    __atomic_store_n(&ring->tid, thread->tid, __ATOMIC_RELEASE);
    thread->head = ring->head;
    thread->tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    thread->stack_from = thread->stack_to = 0;
    thread->now = 0;
    thread->blas.handle = 0;
    __builtin_memset(thread->ranges.named, 0, sizeof(thread->ranges.named));
    note_used(shared, number + 1);
    int kept = errno;
    if (watched) pthread_setspecific(ending, thread);
    errno = kept;
    thread->ring = ring;
    ci_set_busy(thread, false);
    return true;
  }
  ci_set_busy(thread, false);
  lose_without_ring(lost);
  return false;
}
