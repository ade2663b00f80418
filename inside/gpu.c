/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* GPU times from CUPTI's activity records. CUPTI's callbacks stay off, so the program's calls stay
 * as fast as they are. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "cupti.h"
#include "gpu_buffers.h"
#include "gpu_operations.h"
#include "gpu_windows.h"
#include "recording.h"

OLD_VERSION(pthread_create);
OLD_VERSION(pthread_attr_init);
OLD_VERSION(pthread_attr_setstacksize);
OLD_VERSION(pthread_attr_setdetachstate);

#define FLUSH_EVERY_NS 100000000
/* After a window. What GPUs have not done by then is delivered in the next one. */
#define FLUSH_FOR_NS 1000000000

/* Which of our threads is in CUPTI. Once the process ends, no other enters it any more. */
enum { NO_THREAD, REPORTER, ENDER };
static int in_cupti;
static bool ending;    /* the ending thread waits for the reporting one */
static bool may_flush; /* before 13.0.1, a flush while other threads submit work could crash */

static struct ci_gpu_wish wish;
static __u32 version;    /* as CUPTI says it */
static bool is_on;       /* CUPTI records what is submitted */
static __u64 changed_ns; /* when that changed last */

/* In windows only the first. Switching CUPTI 13.0.1's records on and off while copies, fills or
 * whole graphs are among them makes programs crash after some ten windows; kernels alone did not in
 * 9,581.
 */
static const int KINDS[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_MEMCPY, CUPTI_KIND_MEMCPY2,
                            CUPTI_KIND_MEMSET};
static bool has_whole_graphs(void) { return wish.of == CB_GPU_GRAPHS && !wish.period; }
static size_t kinds(void) { return wish.period ? 1 : sizeof(KINDS) / sizeof(KINDS[0]); }

/* Reports which version of CUPTI gives the process's GPU times, or why none does. */
static void say(__u32 times_of, const char* text) {
  struct ci_thread* thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_GPU);
  size_t length = strnlen(text, CB_LONG_STRING - 1);
  __u32 size = (__u32)(sizeof(struct cb_gpu_times) + length + 1);
  struct cb_gpu_times* record = thread ? ci_reserve(thread, size, CB_DROPPED_GPU) : NULL;
  if (!record) return;
  ci_fill_gpu_head(&record->head, thread, CB_GPU_TIMES);
  record->version = version;
  record->times_of = times_of;
  record->window = wish.window;
  record->period = wish.period;
  memcpy(record + 1, text, length);
  ((char*)(record + 1))[length] = 0;
  record->head.string_size = (__u16)(length + 1);
  ci_commit(thread, size);
}

/* False: cudabpf has ended, or died. */
static bool is_wanted(void) {
  static __u32 reads, same; /* the last count of its readings, and for how many looks */
  const __u32 LONG = 100;
  const struct ci_shared* shared = ci_process->shared;
  __u32 now = __atomic_load_n(&shared->reads, __ATOMIC_RELAXED);
  same = now == reads ? same + 1 : 0;
  reads = now;
  return same < LONG && __atomic_load_n(&shared->on, __ATOMIC_RELAXED) != CI_NOTHING;
}

static bool changes(int from, int to) {
  return __atomic_compare_exchange_n(&in_cupti, &from, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* CUPTI has one user in a process. The place stays free for a later one, such as the program's own
 * profiler. */
static void ignore_call(void* data, int domain, __u32 id, const void* call) {
  (void)data, (void)domain, (void)id, (void)call;
}

static int is_free(void) {
  void* subscriber = NULL;
  int result = ci_cupti.Subscribe(&subscriber, (void*)ignore_call, NULL);
  if (result == CUPTI_SUCCESS) ci_cupti.Unsubscribe(subscriber);
  return result;
}

/* Adds to a refusal by CUPTI what the user can do about it. */
static const char* with_advice(const char* refusal) {
  static char text[512];
  static const char TAKEN[] = ": another profiler uses CUPTI in this process",
                    UNFIT[] =
                        ": CUPTI cannot be used in this process; that of another version may "
                        "(`pip install nvidia-cuda-cupti`), and CUDABPF_CUPTI can name its path";
  bool taken = strstr(refusal, "MULTIPLE_SUBSCRIBERS") != NULL;
  const char* advice = taken ? TAKEN : UNFIT;
  size_t length = strnlen(refusal, sizeof(text) - sizeof(UNFIT));
  memcpy(text, refusal, length);
  memcpy(text + length, advice, strlen(advice) + 1);
  return text;
}

static void say_refusal(int result) {
  const char* why = NULL;
  ci_cupti.GetResultString(result, &why);
  say(0, with_advice(why ? why : "libcupti refuses"));
}

/* Called with a buffer that CUPTI has filled, by a thread of CUPTI's or by the one that flushes. */
static void take(void* context, __u32 stream, __u8* data, size_t size, size_t filled) {
  if (!data) return;
  size_t lost = 0;
  if (ci_cupti.ActivityGetNumDroppedRecords(context, stream, &lost) != CUPTI_SUCCESS) lost = 0;
  struct ci_gpu_buffer* buffer = ci_queue_gpu_buffer(data, size, filled, lost);
  if (!buffer) return;
  ci_report_gpu_operations(buffer);
  ci_reuse_gpu_buffer(buffer);
}

static int set_attribute(enum cupti_attribute attribute, void* value, size_t size) {
  return ci_cupti.ActivitySetAttribute((int)attribute, &size, value);
}

static int set_up(void) {
  __u8 yes = 1;
  size_t device_buffers = 8; /* of 3.2 MB of GPU memory each; used again after they were read */
  set_attribute(CUPTI_ZEROED_OUT_BUFFER, &yes, sizeof(yes));
  set_attribute(CUPTI_DEVICE_BUFFER_POOL_LIMIT, &device_buffers, sizeof(device_buffers));
  return set_attribute(CUPTI_PER_THREAD_BUFFER, &yes, sizeof(yes));
}

/* The functions anew each time: another profiler may have put its own in their place. */
static int switch_on(void) {
  int result = ci_cupti.ActivityRegisterCallbacks(ci_give_gpu_buffer, take);
  for (size_t i = 0; !result && i < kinds(); i++) result = ci_cupti.ActivityEnable(KINDS[i]);
  if (!result && has_whole_graphs()) result = ci_cupti.ActivityEnable(CUPTI_KIND_GRAPH_TRACE);
  is_on = !result;
  changed_ns = ci_monotonic();
  return result;
}

static void switch_off(void) {
  for (size_t i = 0; i < kinds(); i++) ci_cupti.ActivityDisable(KINDS[i]);
  if (has_whole_graphs()) ci_cupti.ActivityDisable(CUPTI_KIND_GRAPH_TRACE);
  is_on = false;
  changed_ns = ci_monotonic();
}

/* cudabpf is gone: the program must not pay for records that it would not read. */
static void stop(void) {
  ci_refuse_gpu_buffers();
  if (may_flush && is_on) switch_off(); /* before 13.0.1, it could hang, too */
}

static void report_full_buffers(const bool* stop) {
  struct ci_gpu_buffer* buffer;
  while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE) && (buffer = ci_full_gpu_buffer())) {
    ci_report_gpu_operations(buffer);
    ci_reuse_gpu_buffer(buffer);
  }
}

/* ----- windows */

static void mark(enum cb_gpu_window_step step) {
  struct cb_gpu_window window = {.step = step};
  ci_report_gpu_window(&window);
}

/* Each thread begins a new buffer: when it asks for that shows which call submitted the first
 * operation in it. */
static void open_window(void) {
  static bool refused;
  int result = is_free();
  if (!result) {
    ci_cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED);
    report_full_buffers(&ending);
    mark(CB_GPU_OPENING);
    result = switch_on();
    mark(result ? CB_GPU_CLOSED : CB_GPU_OPEN);
  }
  if (result && !refused) say_refusal(result);
  refused = result != CUPTI_SUCCESS;
}

/* Another profiler that has begun meanwhile needs what is switched on, and switches it off. */
static void close_window(void) {
  mark(CB_GPU_CLOSING);
  if (is_free() == CUPTI_SUCCESS)
    switch_off();
  else
    is_on = false;
  mark(CB_GPU_CLOSED);
}

static void keep_to_windows(__u64 now) {
  static bool was_open;
  bool is_open = ci_gpu_window_is_open(&wish, now);
  if (is_open == was_open) return;
  was_open = is_open;
  if (is_open)
    open_window();
  else if (is_on)
    close_window();
}

/* ----- the reporting thread */

/* A thread that rarely submits work takes long to fill its buffers, and CUPTI delivers only full
 * ones unless it is flushed. */
static void flush(__u64 now) {
  if (may_flush && (is_on || now - changed_ns < FLUSH_FOR_NS)) ci_cupti.ActivityFlushAll(0);
}

static void* report(void* unused) {
  prctl(PR_SET_NAME, "cudabpf-gpu");
  __u64 looked = ci_monotonic();
  for (bool wanted = true; wanted;) {
    ci_wait_for_gpu_buffer(ci_before_gpu_window(&wish, ci_monotonic(), FLUSH_EVERY_NS));
    if (!changes(NO_THREAD, REPORTER)) break;
    report_full_buffers(&ending);
    __u64 now = ci_monotonic();
    bool look = now - looked >= FLUSH_EVERY_NS;
    if (look) looked = now;
    if (look) wanted = ci_state() == CI_TRACED && is_wanted();
    if (!wanted) {
      stop();
    } else if (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
      if (wish.period) keep_to_windows(now);
      if (look) flush(now);
    }
    if (!changes(REPORTER, NO_THREAD)) break;
  }
  return unused;
}

/* False: no thread could be started. */
static bool start_reporting(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  const size_t STACK = 1 << 20; /* CUPTI's code runs on it, too */
  __u64 signals = ci_block_signals();
  bool started = pthread_attr_init(&attributes) == 0 &&
                 pthread_attr_setstacksize(&attributes, STACK) == 0 &&
                 pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                 pthread_create(&thread, &attributes, report, NULL) == 0;
  ci_restore_signals(signals);
  return started;
}

/* At exit, before CUPTI is gone: what a GPU has not done by now is left out. From here on the
 * reporting thread leaves CUPTI alone: it would read freed memory. */
static void report_the_rest(void) {
  if (!ci_owns_gpu_buffers()) return;
  const struct timespec moment = {.tv_nsec = 1000000};
  const __u64 give_up = ci_monotonic() + 1000000000;
  __atomic_store_n(&ending, true, __ATOMIC_RELEASE);
  while (!changes(NO_THREAD, ENDER) && ci_monotonic() < give_up)
    ci_system(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
  __atomic_store_n(&in_cupti, ENDER, __ATOMIC_RELAXED);
  if (ci_state() != CI_TRACED) return;
  if (wish.period && is_on) mark(CB_GPU_CLOSING);
  const bool never = false;
  ci_cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED);
  report_full_buffers(&never);
}

void ci_time_gpus(const struct ci_gpu_wish* wanted) {
  static bool begun;
  const char* why = NULL;
  if (begun) return; /* for another libcuda of the process */
  if (!ci_load_cupti(&why)) return say(0, why);
  ci_cupti.GetVersion(&version);
  if (version < CUPTI_12_3)
    return say(0,
               "the libcupti found cannot distinguish threads; that of CUDA 12.3 or later can "
               "(`pip install nvidia-cuda-cupti`), and CUDABPF_CUPTI can name its path");
  may_flush = version >= CUPTI_13_0_1;
  if (wanted->period && version != CUPTI_13_0_1)
    return say(0,
               "the libcupti found has not been tried with windows; that of CUDA 13.0.1 has, and "
               "without windows any can record");
  begun = true;
  wish = *wanted;
  if (wish.window > wish.period) wish.window = wish.period;
  ci_own_gpu_buffers();
  int result = is_free();
  if (!result) result = set_up();
  if (!result && !wish.period) result = switch_on();
  if (result) return say_refusal(result);
  if (!start_reporting()) {
    stop();
    return say(0, "the thread that collects what it records could not be started");
  }
  say(wish.of, ci_cupti.path);
  atexit(report_the_rest);
}
