/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CUPTI's records of GPU operations become records in the ring of the reporting thread. */
#include "gpu_operations.h"

#include <string.h>
#include <sys/syscall.h>

#include "cupti.h"
#include "recording.h"

#define PATIENCE_NS 300000000ULL /* per buffer, with a cudabpf that does not read */

static bool unread; /* a ring was full for long: cudabpf does not read any more */

/* The place of a record. Waits until cudabpf has read what is in the ring, unless cudabpf does not
 * read any more. */
static void* place_for(struct ci_thread* thread, __u32 size, __u64* give_up) {
  const struct timespec moment = {.tv_nsec = 1000000};
  for (;;) {
    __u64 at = thread->head & (thread->size - 1), left = thread->size - at;
    __u64 needed = sizeof(struct ci_slot) + ci_padded(size);
    if (needed > left) needed += left;
    __u64 tail = __atomic_load_n(&thread->ring->tail, __ATOMIC_ACQUIRE);
    bool fits = thread->head + needed - tail <= thread->size;
    if (fits) __atomic_store_n(&unread, false, __ATOMIC_RELAXED);
    if (!fits && ci_monotonic() > *give_up) __atomic_store_n(&unread, true, __ATOMIC_RELAXED);
    if (fits || __atomic_load_n(&unread, __ATOMIC_RELAXED) ||
        __atomic_load_n(&ci_process->shared->on, __ATOMIC_RELAXED) < CI_RETURNS)
      return ci_reserve(thread, size, CB_DROPPED_GPU);
    ci_system(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
  }
}

void ci_fill_gpu_head(struct cb_head* head, struct ci_thread* thread, __u8 kind) {
  ci_fill_head(head, thread, kind, ci_now());
  head->sp = 0;
  head->function = 0;
}

static __u64 hash_of(const char* text, size_t length) {
  __u64 hash = length * CB_HASH_FACTOR;
  for (size_t i = 0; i < length; i += 8) {
    __u64 word = 0;
    memcpy(&word, text + i, length - i < 8 ? length - i : 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return hash | 1; /* 0: no name */
}

/* What stands for the kernel's name, which is sent if it was not sent lately. CUPTI owns the text
 * and may put another one there later, so the text counts, not its address. */
static __u64 name_of(struct ci_thread* thread, const char* text, __u64* give_up) {
  static __u64 sent[CB_NAME_SLOTS];
  if (!text) return 0;
  size_t length = strnlen(text, CB_LONG_STRING - 1);
  __u64 name = hash_of(text, length);
  __u64* slot = &sent[name % CB_NAME_SLOTS];
  /* A new cudabpf has not received it. */
  __u64 key = name ^ ((__u64)ci_process->generation << 32);
  if (__atomic_load_n(slot, __ATOMIC_RELAXED) == key) return name;
  __u32 size = (__u32)sizeof(struct cb_gpu_name) + (__u32)length + 1;
  struct cb_gpu_name* record = place_for(thread, size, give_up);
  if (!record) return name;
  ci_fill_gpu_head(&record->head, thread, CB_GPU_NAME);
  record->name = name;
  memcpy(record + 1, text, length);
  ((char*)(record + 1))[length] = 0;
  if (text[length]) record->head.flags = CB_STRING_CUT;
  record->head.string_size = (__u16)(length + 1);
  ci_commit(thread, size);
  __atomic_store_n(slot, key, __ATOMIC_RELAXED);
  return name;
}

/* CUPTI's clock is CLOCK_REALTIME once CUDA runs, and something else before. The quickest of
 * several readings gives how far it is ahead of the trace's clock; its duration bounds the error.
 */
static __u64 ahead_of_monotonic(__u64* error) {
  const int READINGS = 16;
  __u64 best = ~0ULL, ahead = 0;
  for (int i = 0; i < READINGS; i++) {
    __u64 now = 0, before = ci_monotonic();
    if (ci_cupti.GetTimestamp(&now) != CUPTI_SUCCESS) continue;
    __u64 took = ci_monotonic() - before;
    if (took >= best) continue;
    best = took;
    ahead = now - before - took / 2;
  }
  *error = best / 2 + 1;
  return ahead;
}

/* The state of reporting a buffer's records. */
struct reporting {
  struct ci_thread* thread;
  const struct ci_gpu_buffer* buffer;
  __u64 ahead;
  __u64 give_up;
  __u32 operations;
};

static void set_node(struct cb_gpu_operation* work, __u32 graph, __u64 node) {
  work->graph = graph;
  work->node = (__u32)node; /* the graph's number is above it */
}

/* False: the record is of another kind. */
static bool read_activity(const void* record, struct cb_gpu_operation* work, const char** name) {
  __u32 kind = *(const __u32*)record;
#define TAKE(activity)                                                    \
  work->began = (activity)->start, work->ended = (activity)->end,         \
  work->device = (activity)->device, work->context = (activity)->context, \
  work->stream = (activity)->stream, work->correlation = (activity)->correlation
  if (kind == CUPTI_KIND_CONCURRENT_KERNEL) {
    const struct cupti_kernel* kernel = record;
    TAKE(kernel);
    work->head.function = CB_GPU_KERNEL;
    memcpy(work->grid, kernel->grid, sizeof(work->grid));
    memcpy(work->block, kernel->block, sizeof(work->block));
    work->shared = kernel->dynamic_shared;
    set_node(work, kernel->graph, kernel->graph_node);
    *name = kernel->name;
  } else if (kind == CUPTI_KIND_MEMCPY) {
    const struct cupti_copy* copy = record;
    TAKE(copy);
    work->head.function = CB_GPU_COPY;
    work->size = copy->bytes;
    work->direction = copy->direction;
    set_node(work, copy->graph, copy->graph_node);
  } else if (kind == CUPTI_KIND_MEMCPY2) {
    const struct cupti_peer_copy* copy = record;
    TAKE(copy);
    work->head.function = CB_GPU_COPY;
    work->size = copy->bytes;
    work->direction = copy->direction;
    set_node(work, copy->graph, copy->graph_node);
  } else if (kind == CUPTI_KIND_MEMSET) {
    const struct cupti_fill* fill = record;
    TAKE(fill);
    work->head.function = CB_GPU_SET;
    work->size = fill->bytes;
    set_node(work, fill->graph, fill->graph_node);
  } else if (kind == CUPTI_KIND_GRAPH_TRACE) {
    const struct cupti_graph* graph = record;
    TAKE(graph);
    work->head.function = CB_GPU_GRAPH;
    set_node(work, graph->graph, 0);
  }
#undef TAKE
  return work->head.function != 0;
}

static void report(struct reporting* reporting, const void* activity) {
  struct cb_gpu_operation work = {0};
  const char* name = NULL;
  if (!read_activity(activity, &work, &name)) return;
  /* Report it even without a valid time: it still has a place in the order. */
  bool valid = work.began > reporting->ahead && work.ended >= work.began;
  __u16 op = work.head.function;
  work.name = name_of(reporting->thread, name, &reporting->give_up);
  struct cb_gpu_operation* record = place_for(reporting->thread, sizeof(work), &reporting->give_up);
  reporting->operations++;
  if (!record) return;
  ci_fill_gpu_head(&work.head, reporting->thread, CB_GPU_WORK);
  work.head.function = op;
  work.began = valid ? work.began - reporting->ahead : 0;
  work.ended = valid ? work.ended - reporting->ahead : 0;
  work.lane = reporting->buffer->lane;
  work.batch = reporting->buffer->batch;
  *record = work;
  ci_commit(reporting->thread, sizeof(work));
}

static void report_batch(struct reporting* reporting, __u64 clock_error) {
  struct cb_gpu_batch* batch = place_for(reporting->thread, sizeof(*batch), &reporting->give_up);
  if (!batch) return;
  ci_fill_gpu_head(&batch->head, reporting->thread, CB_GPU_BATCH);
  batch->since = reporting->buffer->since;
  batch->asked = reporting->buffer->asked;
  batch->lost = reporting->buffer->lost;
  batch->clock_error = clock_error;
  batch->thread = reporting->buffer->thread;
  batch->lane = reporting->buffer->lane;
  batch->batch = reporting->buffer->batch;
  batch->operations = reporting->operations;
  ci_commit(reporting->thread, sizeof(*batch));
}

void ci_report_gpu_window(const struct cb_gpu_window* window) {
  struct ci_thread* thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_GPU);
  __u64 give_up = ci_monotonic() + PATIENCE_NS;
  struct cb_gpu_window* record = thread ? place_for(thread, sizeof(*window), &give_up) : NULL;
  if (!record) return;
  *record = *window;
  ci_fill_gpu_head(&record->head, thread, CB_GPU_WINDOW);
  ci_commit(thread, sizeof(*window));
}

void ci_report_gpu_operations(const struct ci_gpu_buffer* buffer) {
  struct reporting reporting = {.thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_GPU),
                                .buffer = buffer,
                                .give_up = ci_monotonic() + PATIENCE_NS};
  if (!reporting.thread) return;
  __u64 clock_error = 0;
  reporting.ahead = ahead_of_monotonic(&clock_error);
  for (void* record = NULL; ci_cupti.ActivityGetNextRecord((__u8*)buffer->data, buffer->filled,
                                                           &record) == CUPTI_SUCCESS;)
    report(&reporting, record);
  report_batch(&reporting, clock_error);
}
