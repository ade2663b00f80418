/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Python stacks of the program's threads, each of which has a number and is described once.
 *
 * A thread's own frames do not change while it is in our call, and nothing that they refer to goes
 * away: so they are read without Python's lock, whether the thread has it or not. */
#include "python.h"

#include <sys/mman.h>

#include "recording.h"

enum {
  NOT_FOUND = 0,
  FOUND,   /* no thread has been looked at yet */
  CHECKED, /* frames are as the layout says */
  REFUSED,
};
static __u32 state; /* what follows is complete when this says so */
static struct ci_python python;
static const char* refusal;
#define WRONG_FRAMES "its frames are not as its version has them"
static __u32 said_in; /* the process whose rings have this, by its generation */

/* ----- stacks that have a number. A child finds this memory empty: what its parent has described
 * is in its parent's trace.
 *
 * A place is written by any thread, without a lock. `check` repeats half of the key, so that words
 * of two writers are taken for no stack; it is then described again, under another number. */

struct known {
  __u64 key; /* of the stack; 0: none */
  __u32 check;
  __u32 before; /* the upper half of its number */
};
#define WAYS 4
#define SETS (CB_STACK_PLACES / WAYS)
static struct known* known;
static __u32 numbered;

static bool own_memory(void) {
  void* memory = mmap(NULL, sizeof(struct known) * CB_STACK_PLACES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  if (madvise(memory, sizeof(struct known) * CB_STACK_PLACES, MADV_WIPEONFORK) != 0) return false;
  known = memory;
  return true;
}

static struct known* set_of(__u64 key) { return &known[(key >> 40) % SETS * WAYS]; }

static __u64 number_of(const struct known* one, __u32 before) {
  return (__u64)before * CB_STACK_PLACES + (__u64)(one - known);
}

static __u64 find_known(__u64 key) {
  struct known* set = set_of(key);
  for (unsigned i = 0; i < WAYS; i++) {
    if (__atomic_load_n(&set[i].key, __ATOMIC_ACQUIRE) != key) continue;
    __u64 rest = __atomic_load_n((const __u64*)&set[i].check, __ATOMIC_RELAXED);
    if ((__u32)rest == (__u32)key) return number_of(&set[i], (__u32)(rest >> 32));
  }
  return 0;
}

/* A free place in the key's set, else any. */
static struct known* place_for(__u64 key, __u32 before) {
  struct known* set = set_of(key);
  for (unsigned i = 0; i < WAYS; i++)
    if (!__atomic_load_n(&set[i].key, __ATOMIC_RELAXED)) return &set[i];
  return &set[before % WAYS];
}

static void keep(struct known* place, __u64 key, __u32 before) {
  __atomic_store_n(&place->key, 0, __ATOMIC_RELEASE);
  __atomic_store_n((__u64*)&place->check, (__u64)before << 32 | (__u32)key, __ATOMIC_RELEASE);
  __atomic_store_n(&place->key, key, __ATOMIC_RELEASE);
}

/* ----- a stack's key: by the addresses of the code and of the instruction in each frame. Another
 * code may come to lie where one was freed, with its names and its table of lines at the same
 * addresses as well, so nothing that is cheap to read shows which one it is. Therefore Python's
 * code type has our function called when one is freed, and it counts: a stack whose code has been
 * freed since has another key. */

#define FREED_SLOTS 8192
static __u32 freed[FREED_SLOTS]; /* how many, by their addresses */
static void (*free_code)(__u64);

static inline __u32* freed_at(__u64 code) { return &freed[code * CB_HASH_FACTOR >> 51]; }

static void code_is_freed(__u64 code) {
  __atomic_fetch_add(freed_at(code), 1, __ATOMIC_RELAXED);
  free_code(code);
}

static void count_freed_codes(void) {
  __u64* place = (__u64*)(python.code_type + CB_TYPE_DEALLOCATES);
  free_code = (void (*)(__u64)) * place;
  __atomic_store_n(place, (__u64)&code_is_freed, __ATOMIC_RELEASE);
}

static inline __u64 mixed(__u64 one, __u64 other) {
  unsigned __int128 product =
      (unsigned __int128)(one ^ 0x2d358dccaa6c78a5ULL) * (other ^ CB_HASH_FACTOR);
  return (__u64)product ^ (__u64)(product >> 64);
}

/* The next frame of Python's from this one on, outwards; 0: there is none. */
static inline __u64 python_frame(__u64 frame) {
  while (frame && !ci_is_python_frame(&python, frame))
    frame = ci_frame_word(&python, frame, CB_FRAME_PREVIOUS);
  return frame;
}

static inline struct ci_python_frame said_by(__u64 frame) {
  return (struct ci_python_frame){ci_frame_word(&python, frame, CB_FRAME_CODE) & ~CB_CODE_TAG,
                                  ci_frame_word(&python, frame, CB_FRAME_INSTRUCTION)};
}

static inline __u64 outer_frame(__u64 frame) {
  return python_frame(ci_frame_word(&python, frame, CB_FRAME_PREVIOUS));
}

static __u64 key_of(__u64 innermost) {
  __u64 key = 1, frame = innermost;
  for (unsigned i = 0; frame && i < CB_STACK_FRAMES; i++, frame = outer_frame(frame)) {
    struct ci_python_frame said = said_by(frame);
    __u64 times = __atomic_load_n(freed_at(said.code), __ATOMIC_RELAXED);
    key = mixed(key, mixed(said.code + times * CB_HASH_FACTOR, said.instruction));
  }
  key = mixed(key, frame != 0);
  return key ? key : 1;
}

/* ----- records */

static void say(struct ci_thread* thread, const char* why_not) {
  struct cb_python* record = ci_reserve(thread, sizeof(*record) + 256, CB_DROPPED_STACK);
  if (!record) return;
  const char* text = why_not ? why_not : python.version;
  char* to = (char*)(record + 1);
  __u32 size = 0;
  if (why_not) {
    for (const char* from = "Python "; *from; from++) to[size++] = *from;
    for (const char* from = python.version; *from; from++) to[size++] = *from;
    for (const char* from = ": "; *from; from++) to[size++] = *from;
  }
  for (; *text && size < 255; text++) to[size++] = *text;
  to[size++] = 0;
  ci_fill_head(&record->head, thread, CB_PYTHON, ci_now());
  record->head.sp = 0;
  record->head.function = 0;
  record->head.string_size = (__u16)size;
  record->refused = why_not != NULL;
  record->reserved = 0;
  ci_commit(thread, (__u32)sizeof(*record) + size);
}

static void say_once(struct ci_thread* thread, const char* why_not) {
  __u32 here = ci_process->generation;
  if (likely(__atomic_load_n(&said_in, __ATOMIC_RELAXED) == here)) return;
  if (__atomic_exchange_n(&said_in, here, __ATOMIC_RELAXED) != here) say(thread, why_not);
}

static void refuse(struct ci_thread* thread, const char* why) {
  __atomic_store_n(&refusal, why, __ATOMIC_RELAXED);
  if (__atomic_exchange_n(&state, REFUSED, __ATOMIC_ACQ_REL) == REFUSED) return;
  __atomic_store_n(&said_in, ci_process->generation, __ATOMIC_RELAXED);
  say(thread, why);
}

/* Describes the stack in the thread's ring. False: it is not there. The record's time is that
 * before all else: another thread that finds the number has a later one, whatever its processor
 * executes first. */
static bool describe(struct ci_thread* thread, __u64 innermost, __u64 number) {
  struct cb_stack* record = ci_reserve(thread, sizeof(*record) + CB_STACK_SIZE, CB_DROPPED_STACK);
  if (!record) return false;
  bool text_cut = false, sound = true;
  __u64 frame = innermost, began = ci_now();
  record->size = record->frames = 0;
  for (; frame && record->frames < CB_STACK_FRAMES; frame = outer_frame(frame)) {
    __u32 size = ci_describe_frame(&python, said_by(frame), (__u8*)(record + 1) + record->size,
                                   CB_STACK_SIZE - record->size, &text_cut, &sound);
    if (!size) break;
    record->size += size;
    record->frames++;
  }
  record->cut = frame != 0;
  record->number = number;
  ci_fill_head(&record->head, thread, CB_STACK, began);
  record->head.sp = 0;
  record->head.function = 0;
  record->head.flags = text_cut ? CB_STRING_CUT : 0;
  ci_commit(thread, (__u32)sizeof(*record) + record->size);
  if (!sound) refuse(thread, WRONG_FRAMES);
  return sound;
}

/* ----- the stack of a call */

static bool check(struct ci_thread* thread, __u64 of_thread) {
  enum ci_frames frames = ci_look_at_frames(&python, of_thread);
  if (frames == CI_FRAMES_WRONG) refuse(thread, WRONG_FRAMES);
  if (frames != CI_FRAMES_SOUND) return false;
  __u32 found = FOUND;
  __atomic_compare_exchange_n(&state, &found, CHECKED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return true;
}

static __u64 new_number(struct ci_thread* thread, __u64 innermost, __u64 key) {
  __u32 before = __atomic_add_fetch(&numbered, 1, __ATOMIC_RELAXED);
  struct known* place = place_for(key, before);
  __u64 number = number_of(place, before);
  if (!describe(thread, innermost, number)) return 0;
  keep(place, key, before);
  return number;
}

__u64 ci_stack_number(struct ci_thread* thread) {
  __u32 now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (unlikely(now == NOT_FOUND)) return 0;
  if (unlikely(now == REFUSED)) {
    say_once(thread, __atomic_load_n(&refusal, __ATOMIC_RELAXED));
    return 0;
  }
  __u64 of_thread = python.thread_state();
  if (!of_thread || python.is_finalizing()) return 0;
  if (unlikely(python.first_interpreter() != python.main_interpreter())) {
    /* A thread's state is then not always that of the frames that it runs. */
    refuse(thread, CB_PYTHON_INTERPRETERS);
    return 0;
  }
  if (unlikely(now == FOUND) && !check(thread, of_thread)) return 0;
  say_once(thread, NULL);
  __u64 innermost = python_frame(ci_innermost_frame(&python, of_thread));
  if (!innermost) return 0;
  __u64 key = key_of(innermost), number = find_known(key);
  return likely(number != 0) ? number : new_number(thread, innermost, key);
}

void ci_look_for_python(void) {
  if (state != NOT_FOUND || !ci_python_is_loaded()) return;
  refusal = ci_find_python(&python);
  if (!refusal && !own_memory()) refusal = "there is no memory for its stacks";
  if (!refusal) count_freed_codes();
  __atomic_store_n(&state, refusal ? REFUSED : FOUND, __ATOMIC_RELEASE);
}
