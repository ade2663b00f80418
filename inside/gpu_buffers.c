/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The buffers that CUPTI fills with records of GPU operations. The thread that delivers a full one
 * may hold a lock that a thread of the program waits for, so a full one is only queued, and another
 * thread reports its contents.
 *
 * CUPTI gives each thread that submits work its own buffers, and each record its place in them at
 * submission. So the order of both, thread by thread, shows which call submitted what, and calls
 * need not read any number of CUPTI's.
 */
#include "gpu_buffers.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "recording.h"

/* Some 1,100 kernels: records of a thread that submits few come by the flush, not when it is full.
 */
#define BUFFER (256u << 10)
#define MAX_FULL 256 /* in line */
#define MAX_FREE 32  /* the rest of the memory goes back */

struct list {
  struct ci_gpu_buffer *first, *last;
  __u32 count; /* a futex of the thread that waits for the first buffer */
};

static int lists_taken; /* 1: a thread has them */
static struct list full, empty;
static struct ci_gpu_buffer* reserve; /* CUPTI before 12.9 crashes if it gets no buffer */
static __u32 lanes;
static __u32 owner;
static bool refused;

static _Thread_local struct {
  __u64 since;
  __u32 lane; /* 0: none yet */
  __u32 batches;
} here __attribute__((tls_model("initial-exec")));

static struct ci_gpu_buffer* new_buffer(void) {
  void* memory = mmap(NULL, sizeof(struct ci_gpu_buffer) + BUFFER, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* Held for a few instructions. */
static void lock_lists(void) {
  while (__atomic_exchange_n(&lists_taken, 1, __ATOMIC_ACQUIRE))
    ci_system(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}
static void unlock_lists(void) { __atomic_store_n(&lists_taken, 0, __ATOMIC_RELEASE); }

/* False: the list is full. */
static bool append(struct list* list, struct ci_gpu_buffer* buffer, __u32 most) {
  lock_lists();
  bool fits = list->count < most;
  if (fits) {
    buffer->next = NULL;
    *(list->first ? &list->last->next : &list->first) = buffer;
    list->last = buffer;
    __atomic_store_n(&list->count, list->count + 1, __ATOMIC_RELAXED);
  }
  unlock_lists();
  return fits;
}

static struct ci_gpu_buffer* take_first(struct list* list) {
  lock_lists();
  struct ci_gpu_buffer* buffer = list->first;
  if (buffer) {
    list->first = buffer->next;
    __atomic_store_n(&list->count, list->count - 1, __ATOMIC_RELAXED);
  }
  unlock_lists();
  return buffer;
}

void ci_own_gpu_buffers(void) {
  reserve = new_buffer();
  owner = (__u32)ci_system(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* A child has its parent's CUPTI and buffers, and nothing to do with them. */
bool ci_owns_gpu_buffers(void) { return owner == (__u32)ci_system(SYS_getpid, 0, 0, 0, 0, 0, 0); }

/* Called by the thread that submits work. */
void ci_give_gpu_buffer(__u8** data, size_t* size, size_t* most) {
  struct ci_gpu_buffer* buffer = take_first(&empty);
  if (!buffer) buffer = new_buffer();
  if (!buffer) buffer = __atomic_exchange_n(&reserve, NULL, __ATOMIC_ACQ_REL);
  *most = 0;
  *data = buffer ? buffer->data : NULL;
  *size = buffer ? BUFFER : 0;
  if (!buffer) return;
  buffer->asked = ci_monotonic();
  if (!here.lane) {
    here.lane = __atomic_add_fetch(&lanes, 1, __ATOMIC_RELAXED);
    here.since = buffer->asked;
  }
  buffer->thread = (__u32)ci_system(SYS_gettid, 0, 0, 0, 0, 0, 0);
  buffer->since = here.since;
  buffer->lane = here.lane;
  buffer->batch = here.batches++;
}

struct ci_gpu_buffer* ci_queue_gpu_buffer(__u8* data, size_t size, size_t filled, __u64 lost) {
  struct ci_gpu_buffer* buffer =
      (struct ci_gpu_buffer*)(data - offsetof(struct ci_gpu_buffer, data));
  buffer->lost = lost;
  buffer->filled = filled < size ? filled : size;
  if (!ci_owns_gpu_buffers() || __atomic_load_n(&refused, __ATOMIC_RELAXED)) {
    ci_reuse_gpu_buffer(buffer);
    return NULL;
  }
  if (!append(&full, buffer, MAX_FULL)) return buffer;
  ci_system(SYS_futex, (long)&full.count, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
  return NULL;
}

struct ci_gpu_buffer* ci_full_gpu_buffer(void) {
  return take_first(&full);
}

void ci_wait_for_gpu_buffer(__u64 ns) {
  const struct timespec time = {.tv_nsec = (long)ns};
  ci_system(SYS_futex, (long)&full.count, FUTEX_WAIT_PRIVATE, 0, (long)&time, 0, 0);
}

void ci_reuse_gpu_buffer(struct ci_gpu_buffer* buffer) {
  memset(buffer->data, 0, buffer->filled); /* CUPTI requires it */
  if (!append(&empty, buffer, MAX_FREE)) munmap(buffer, sizeof(*buffer) + BUFFER);
}

void ci_refuse_gpu_buffers(void) { __atomic_store_n(&refused, true, __ATOMIC_RELAXED); }
