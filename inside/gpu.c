/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When GPUs worked, as CUPTI tells: its activity records become records in the ring of the thread
 * that CUPTI hands them to, which is one of CUPTI's, ours, or one of the program's that flushes.
 * None of the program's calls is watched by CUPTI, so they stay as fast as they are.
 *
 * CUPTI gives each thread that asks for work buffers of its own, and a record its place in them
 * when the thread asks. So which call has asked for what follows from the order of both, thread by
 * thread, and no number of CUPTI's has to be known at a call.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "cupti.h"
#include "recording.h"

OLD_VERSION(pthread_create);
OLD_VERSION(pthread_attr_init);
OLD_VERSION(pthread_attr_setstacksize);
OLD_VERSION(pthread_attr_setdetachstate);

#define FLUSH_EVERY_NS 100000000
#define PATIENCE_NS 300000000ULL /* with a cudabpf that does not read, for each buffer */
/* Some 1,100 kernels: a thread that asks for few has them told by the flush, not by its end. */
#define BUFFER (256u << 10)

struct buffer {
  struct buffer* next; /* free ones are a list */
  __u64 since;         /* when its lane began */
  __u32 thread, lane, batch;
  __u8 data[] __attribute__((aligned(16)));
};

static struct cupti cupti;
static int list_taken; /* 1: a thread has the list of free buffers */
static struct buffer* free_buffers;
static struct buffer* reserve; /* CUPTI before 12.9 crashes if it gets no buffer */
static __u32 lanes;
static __u32 owner; /* the process that has begun this: a child has no part in it */
/* Which thread of ours is in CUPTI. Once the process ends, nobody goes there any more. */
enum { NOBODY, FLUSHER, ENDER };
static int in_cupti;
static bool unread; /* a ring was full for long: cudabpf does not read any more */

static _Thread_local struct {
  __u64 since;
  __u32 lane; /* 0: none yet */
  __u32 batches;
} here __attribute__((tls_model("initial-exec")));

static __u64 monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (__u64)time.tv_sec * 1000000000ULL + (__u64)time.tv_nsec;
}

/* A child has its parent's CUPTI and buffers, and nothing to do with them. */
static bool is_owner(void) { return owner == (__u32)ci_system(SYS_getpid, 0, 0, 0, 0, 0, 0); }

/* ----- buffers */

static struct buffer* new_buffer(void) {
  void* memory = mmap(NULL, sizeof(struct buffer) + BUFFER, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* For the length of a few instructions. */
static void lock_buffers(void) {
  while (__atomic_exchange_n(&list_taken, 1, __ATOMIC_ACQUIRE))
    ci_system(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}
static void unlock_buffers(void) { __atomic_store_n(&list_taken, 0, __ATOMIC_RELEASE); }

/* Called by the thread that asks for work. */
static void give_buffer(__u8** data, size_t* size, size_t* most) {
  lock_buffers();
  struct buffer* buffer = free_buffers;
  if (buffer) free_buffers = buffer->next;
  unlock_buffers();
  if (!buffer) buffer = new_buffer();
  if (!buffer) buffer = __atomic_exchange_n(&reserve, NULL, __ATOMIC_ACQ_REL);
  *most = 0;
  *data = buffer ? buffer->data : NULL;
  *size = buffer ? BUFFER : 0;
  if (!buffer) return;
  if (!here.lane) {
    here.lane = __atomic_add_fetch(&lanes, 1, __ATOMIC_RELAXED);
    here.since = monotonic();
  }
  buffer->thread = (__u32)ci_system(SYS_gettid, 0, 0, 0, 0, 0, 0);
  buffer->since = here.since;
  buffer->lane = here.lane;
  buffer->batch = here.batches++;
}

static void keep_buffer(struct buffer* buffer, size_t filled) {
  memset(buffer->data, 0, filled); /* CUPTI wants it so */
  lock_buffers();
  buffer->next = free_buffers;
  free_buffers = buffer;
  unlock_buffers();
}

/* ----- records */

/* The place of a record. Nobody's call waits here, so this may wait until cudabpf has read what is
 * in the ring, but not for one that does not read. */
static void* place_for(struct ci_thread* thread, __u32 size, __u64* give_up) {
  const struct timespec moment = {.tv_nsec = 1000000};
  for (;;) {
    __u64 at = thread->head & (CI_RING_SIZE - 1), left = CI_RING_SIZE - at;
    __u64 needed = sizeof(struct ci_slot) + ci_padded(size);
    if (needed > left) needed += left;
    __u64 tail = __atomic_load_n(&thread->ring->tail, __ATOMIC_ACQUIRE);
    bool fits = thread->head + needed - tail <= CI_RING_SIZE;
    if (fits) unread = false;
    if (!fits && monotonic() > *give_up) unread = true;
    if (fits || unread || __atomic_load_n(&ci_process->room->on, __ATOMIC_RELAXED) < CI_RETURNS)
      return ci_reserve(thread, size, CB_DROPPED_GPU);
    ci_system(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
  }
}

static void fill_head(struct cb_head* head, struct ci_thread* thread, __u8 kind) {
  ci_fill_head(head, thread, kind, ci_now());
  head->sp = 0;
  head->function = 0;
}

static __u64 hash_of(const char* text, size_t length) {
  __u64 hash = length * 0x9e3779b97f4a7c15ULL;
  for (size_t i = 0; i < length; i += 8) {
    __u64 word = 0;
    memcpy(&word, text + i, length - i < 8 ? length - i : 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return hash | 1; /* 0: no name */
}

/* What stands for the kernel's name, which is sent if it has not been lately. The text is CUPTI's,
 * and may be another's tomorrow, so what it says counts, not where it is. */
static __u64 name_of(struct ci_thread* thread, const char* text, __u64* give_up) {
  static __u64 sent[CB_NAME_SLOTS];
  if (!text) return 0;
  size_t length = strnlen(text, CB_LONG_STRING - 1);
  __u64 name = hash_of(text, length);
  __u64* slot = &sent[name % CB_NAME_SLOTS];
  /* Another cudabpf has not heard it. */
  __u64 key = name ^ ((__u64)ci_process->generation << 32);
  if (__atomic_load_n(slot, __ATOMIC_RELAXED) == key) return name;
  __u32 size = (__u32)sizeof(struct cb_gpu_name) + (__u32)length + 1;
  struct cb_gpu_name* record = place_for(thread, size, give_up);
  if (!record) return name;
  fill_head(&record->head, thread, CB_GPU_NAME);
  record->name = name;
  memcpy(record + 1, text, length);
  ((char*)(record + 1))[length] = 0;
  if (text[length]) record->head.flags = CB_STRING_CUT;
  record->head.string_size = (__u16)(length + 1);
  ci_commit(thread, size);
  __atomic_store_n(slot, key, __ATOMIC_RELAXED);
  return name;
}

/* CUPTI's clock is CLOCK_REALTIME once CUDA runs, and something else before. The best of several
 * readings says by how much it is ahead of the trace's, and the time that it took, how exactly. */
static __u64 ahead_of_monotonic(__u64* error) {
  const int READINGS = 16;
  __u64 best = ~0ULL, ahead = 0;
  for (int i = 0; i < READINGS; i++) {
    __u64 now = 0, before = monotonic();
    if (cupti.GetTimestamp(&now) != CUPTI_SUCCESS) continue;
    __u64 took = monotonic() - before;
    if (took >= best) continue;
    best = took;
    ahead = now - before - took / 2;
  }
  *error = best / 2 + 1;
  return ahead;
}

/* What is told of a buffer's records. */
struct telling {
  struct ci_thread* thread;
  const struct buffer* buffer;
  __u64 ahead;
  __u64 give_up;
  __u64 lost;
  __u32 works;
};

static void set_node(struct cb_gpu_work* work, __u32 graph, __u64 node) {
  work->graph = graph;
  work->node = (__u32)node; /* the graph's number is above it */
}

/* False: the record is of another kind. */
static bool read_activity(const void* record, struct cb_gpu_work* work, const char** name) {
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

static void tell(struct telling* telling, const void* activity) {
  struct cb_gpu_work work = {0};
  const char* name = NULL;
  if (!read_activity(activity, &work, &name)) return;
  /* Without a valid time it is told all the same, for it has a place in the order. */
  bool valid = work.began > telling->ahead && work.ended >= work.began;
  __u16 op = work.head.function;
  work.name = name_of(telling->thread, name, &telling->give_up);
  struct cb_gpu_work* record = place_for(telling->thread, sizeof(work), &telling->give_up);
  telling->works++;
  if (!record) return;
  fill_head(&work.head, telling->thread, CB_GPU_WORK);
  work.head.function = op;
  work.began = valid ? work.began - telling->ahead : 0;
  work.ended = valid ? work.ended - telling->ahead : 0;
  work.lane = telling->buffer->lane;
  work.batch = telling->buffer->batch;
  *record = work;
  ci_commit(telling->thread, sizeof(work));
}

static void tell_batch(struct telling* telling, __u64 clock_error) {
  struct cb_gpu_batch* batch = place_for(telling->thread, sizeof(*batch), &telling->give_up);
  if (!batch) return;
  fill_head(&batch->head, telling->thread, CB_GPU_BATCH);
  batch->since = telling->buffer->since;
  batch->lost = telling->lost;
  batch->clock_error = clock_error;
  batch->thread = telling->buffer->thread;
  batch->lane = telling->buffer->lane;
  batch->batch = telling->buffer->batch;
  batch->works = telling->works;
  ci_commit(telling->thread, sizeof(*batch));
}

static void take_buffer(void* context, __u32 stream, __u8* data, size_t size, size_t filled) {
  if (!data) return;
  struct buffer* buffer = (struct buffer*)(data - offsetof(struct buffer, data));
  struct telling telling = {.buffer = buffer, .give_up = monotonic() + PATIENCE_NS};
  if (is_owner()) telling.thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_GPU);
  if (telling.thread) {
    __u64 clock_error = 0;
    telling.ahead = ahead_of_monotonic(&clock_error);
    size_t lost = 0;
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS)
      telling.lost += lost;
    for (void* record = NULL; cupti.ActivityGetNextRecord(data, filled, &record) == CUPTI_SUCCESS;)
      tell(&telling, record);
    tell_batch(&telling, clock_error);
  }
  keep_buffer(buffer, filled < size ? filled : size);
}

/* ----- beginning and ending */

static const int KINDS[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY, CUPTI_KIND_MEMCPY2,
                            CUPTI_KIND_MEMSET};
#define KIND_COUNT (sizeof(KINDS) / sizeof(KINDS[0]))

/* Says who tells of the process, or why nobody does. */
static void say(__u32 version, __u32 times_of, const char* text) {
  struct ci_thread* thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_GPU);
  size_t length = strnlen(text, CB_LONG_STRING - 1);
  __u32 size = (__u32)(sizeof(struct cb_gpu_times) + length + 1);
  struct cb_gpu_times* record = thread ? ci_reserve(thread, size, CB_DROPPED_GPU) : NULL;
  if (!record) return;
  fill_head(&record->head, thread, CB_GPU_TIMES);
  record->version = version;
  record->times_of = times_of;
  memcpy(record + 1, text, length);
  ((char*)(record + 1))[length] = 0;
  record->head.string_size = (__u16)(length + 1);
  ci_commit(thread, size);
}

/* Whether cudabpf has not ended, or died. */
static bool is_wanted(void) {
  static __u32 reads, same; /* the last count of its readings, and for how many looks */
  const __u32 LONG = 100;
  const struct ci_room* room = ci_process->room;
  __u32 now = __atomic_load_n(&room->reads, __ATOMIC_RELAXED);
  same = now == reads ? same + 1 : 0;
  reads = now;
  return same < LONG && __atomic_load_n(&room->on, __ATOMIC_RELAXED) != CI_NOTHING;
}

static bool changes(int from, int to) {
  return __atomic_compare_exchange_n(&in_cupti, &from, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* Nobody wants to know any more: the program shall not pay for it. */
static void stop_telling(void) {
  for (size_t i = 0; i < KIND_COUNT; i++) cupti.ActivityDisable(KINDS[i]);
  cupti.ActivityDisable(CUPTI_KIND_GRAPH_TRACE);
}

/* The buffers of a thread that asks rarely are not full for long, and CUPTI of itself tells only of
 * full ones. */
static void* flush(void* unused) {
  prctl(PR_SET_NAME, "cudabpf-gpu");
  const struct timespec pause = {.tv_nsec = FLUSH_EVERY_NS};
  for (bool wanted = true; wanted;) {
    ci_system(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
    wanted = ci_state() == CI_TRACED && is_wanted();
    if (!changes(NOBODY, FLUSHER)) break;
    if (wanted)
      cupti.ActivityFlushAll(0);
    else
      stop_telling();
    if (!changes(FLUSHER, NOBODY)) break;
  }
  return unused;
}

static void start_to_flush(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  const size_t STACK = 1 << 20; /* CUPTI's code runs on it, too */
  __u64 signals = ci_block_signals();
  if (pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, STACK) == 0 &&
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0)
    pthread_create(&thread, &attributes, flush, NULL);
  ci_restore_signals(signals);
}

/* At exit, before CUPTI is gone: what a GPU has not done by now is left out. From here on the other
 * thread leaves CUPTI alone: it would read what is freed. */
static void flush_at_exit(void) {
  if (!is_owner()) return;
  const struct timespec moment = {.tv_nsec = 1000000};
  const __u64 give_up = monotonic() + 1000000000;
  while (!changes(NOBODY, ENDER) && monotonic() < give_up)
    ci_system(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
  __atomic_store_n(&in_cupti, ENDER, __ATOMIC_RELAXED);
  if (ci_state() == CI_TRACED) cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED);
}

/* CUPTI has one user in a process. Whoever comes later, the program's own profiler, say, takes its
 * place: it is not kept. */
static void call_nobody(void* data, int domain, __u32 id, const void* call) {
  (void)data, (void)domain, (void)id, (void)call;
}

static int is_free(void) {
  void* subscriber = NULL;
  int result = cupti.Subscribe(&subscriber, (void*)call_nobody, NULL);
  if (result == CUPTI_SUCCESS) cupti.Unsubscribe(subscriber);
  return result;
}

static int set_attribute(enum cupti_attribute attribute, void* value, size_t size) {
  return cupti.ActivitySetAttribute((int)attribute, &size, value);
}

static int enable(enum cb_gpu_times_of of) {
  __u8 yes = 1;
  size_t device_buffers = 8; /* of 3.2 MB of GPU memory each; used again once they were read */
  set_attribute(CUPTI_ZEROED_OUT_BUFFER, &yes, sizeof(yes));
  set_attribute(CUPTI_DEVICE_BUFFER_POOL_LIMIT, &device_buffers, sizeof(device_buffers));
  int result = set_attribute(CUPTI_PER_THREAD_BUFFER, &yes, sizeof(yes));
  if (!result) result = cupti.ActivityRegisterCallbacks(give_buffer, take_buffer);
  for (size_t i = 0; !result && i < KIND_COUNT; i++) result = cupti.ActivityEnable(KINDS[i]);
  if (!result && of == CB_GPU_GRAPHS) result = cupti.ActivityEnable(CUPTI_KIND_GRAPH_TRACE);
  return result;
}

void ci_time_gpus(enum cb_gpu_times_of of) {
  const char* why = NULL;
  __u32 version = 0;
  if (owner) return; /* for another libcuda of the process */
  if (!ci_load_cupti(&cupti, &why)) return say(0, 0, why);
  cupti.GetVersion(&version);
  if (version < CUPTI_12_3)
    return say(version, 0, "it does not tell threads apart; that of CUDA 12.3 or later does");
  reserve = new_buffer();
  owner = (__u32)ci_system(SYS_getpid, 0, 0, 0, 0, 0, 0);
  int result = is_free();
  if (!result) result = enable(of);
  if (result) {
    cupti.GetResultString(result, &why);
    return say(version, 0, why ? why : "libcupti refuses");
  }
  say(version, of, cupti.path);
  /* Before 13.0.1, to flush while others ask for work could crash, and to disable could hang. */
  if (version >= CUPTI_13_0_1) start_to_flush();
  atexit(flush_at_exit);
}
