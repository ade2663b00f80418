/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Python frames of calls that took long, walked when they return. These programs are on the
 * same functions as those that record the calls, and only where slow calls' stacks are wanted.
 *
 * A thread's frames do not change while it is in a call, so they are read without Python's lock.
 * The list of threads may change under the walk: each state must name the one that it was reached
 * by. No thread's state is kept from one walk to the next, because a thread may get another. */
#ifndef CUDABPF_WALK_H
#define CUDABPF_WALK_H

#include "cudabpf/python_layout.h"
#include "cudabpf/walks.h"
#include "tally.h"

const volatile __u64 slow_ns = 0; /* a call that takes so long is slow */

/* What userspace knows of processes. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1); /* userspace makes room */
  __type(key, __u32);
  __type(value, struct cb_python_process);
} pythons SEC(".maps");

/* Mapped by userspace: how many codes were freed, by their addresses. */
__u32 codes_freed[CB_CODE_SLOTS];

static __always_inline __u32* freed_at(__u32 pid, __u64 code) {
  return &codes_freed[index_of(cb_code_slot(pid, code), CB_CODE_SLOTS)];
}

static __always_inline int code_is_freed(struct pt_regs* ctx) {
  struct ids ids = current_ids();
  if (is_traced(ids.pid)) __sync_fetch_and_add(freed_at(ids.pid, PT_REGS_PARM1(ctx)), 1);
  return 0;
}

/* Reserves a walk in the ring and fills its head; null: there is no room. */
static __always_inline struct cb_walk* begin_walk(struct ids ids, __u32 sp) {
  struct cb_walk* walk = reserve(sizeof(*walk), ids.tid, CB_DROPPED_STACK);
  if (!walk) return 0;
  __builtin_memset(walk, 0, sizeof(*walk));
  fill_head(&walk->head, ids, CB_WALK);
  walk->head.ts = bpf_ktime_get_ns();
  walk->head.sp = sp;
  return walk;
}

/* Has userspace look at a process, once. If there is no room for another, its walks stay early. */
static __always_inline void ask_for_python(struct ids ids) {
  struct cb_python_process asked = {.state = CB_PYTHON_ASKED};
  if (bpf_map_update_elem(&pythons, &ids.pid, &asked, BPF_NOEXIST)) return;
  struct cb_walk* walk = begin_walk(ids, 0);
  if (!walk) {
    bpf_map_delete_elem(&pythons, &ids.pid); /* asked again at the next call */
    return;
  }
  walk->end = CB_WALK_ASKS;
  submit(walk);
}

/* `cookie`: where a session keeps when the call began; null: there are no sessions. Returns whether
 * the call's return is wanted. */
static __always_inline bool walk_begins(struct pt_regs* ctx, __u64* cookie) {
  struct ids ids = current_ids();
  if (!selected(ids)) return false;
  struct cb_python_process* python = bpf_map_lookup_elem(&pythons, &ids.pid);
  if (!python) ask_for_python(ids);
  if (python && python->state == CB_PYTHON_NONE) return false;
  if (cookie) {
    if (return_would_kill(ctx)) return false; /* nor is it recorded */
    *cookie = bpf_ktime_get_ns();
    return true;
  }
  if (!keep_counted(call_key(ids.tid, (__u32)PT_REGS_SP(ctx)), plan_of(ctx).function))
    count_tally(CB_TALLY_UNTIMED);
  return true;
}

static __always_inline bool read_word(__u64* word, __u64 at) {
  return !bpf_probe_read_user(word, sizeof(*word), (const void*)at);
}

/* The innermost frame of a thread by its state; 0: it has none. */
static __always_inline bool read_frame(const struct cb_python_process* python, __u64 state,
                                       __u64* frame) {
  if (python->holder && !read_word(&state, state + python->holder)) return false;
  *frame = 0;
  return !state || read_word(frame, state + python->current);
}

/* A walk over the list of threads' states, to the one of a thread. */
struct thread_search {
  __u64 state, before; /* where it is, and came from */
  __u64 frame;         /* what was found: the thread's innermost frame */
  __u32 tid, is_main;
};

/* Looks at a state and goes on to the next. A thread that is being started has a state under the id
 * of the thread that starts it, but no frames. Where Python was built without knowing ids (0), the
 * main thread's state has none. Returns enum cb_walk_end. Not static, like the other such
 * functions, so that the verifier checks it once, and not in every turn of the loop. */
__noinline int look_at_thread(const struct cb_python_process* python,
                              struct thread_search* search) {
  struct {
    __u64 previous, next;
  } neighbours = {};
  __u64 id = 0, frame = 0;
  if (!python || !search) return CB_WALK_UNFOUND;
  if (bpf_probe_read_user(&neighbours, sizeof(neighbours),
                          (const void*)(search->state + python->previous_thread)) ||
      neighbours.previous != search->before || !read_word(&id, search->state + python->native_id))
    return CB_WALK_UNFOUND;
  if (id == search->tid || (!id && search->is_main)) {
    if (!read_frame(python, search->state, &frame)) return CB_WALK_UNREAD;
    if (frame && search->frame) return CB_WALK_UNFOUND; /* two that could be its own */
    if (frame) search->frame = frame;
  }
  search->before = search->state;
  search->state = neighbours.next;
  return CB_WALKED;
}

/* The current thread's innermost frame, whoever it belongs to. 0: it runs no Python; less than
 * CB_WALK_ENDS: why it is not known. */
__noinline __u64 innermost_frame(__u32 pid) {
  struct cb_python_process* python = bpf_map_lookup_elem(&pythons, &pid);
  if (!python || python->state == CB_PYTHON_ASKED) return CB_WALK_EARLY;
  if (python->state != CB_PYTHON_KNOWN) return 0;
  __u64 interpreter = 0, another = 0;
  struct thread_search search = {};
  if (!read_word(&interpreter, python->interpreters)) return CB_WALK_UNFOUND;
  if (!interpreter) return 0;
  if (!read_word(&another, interpreter + python->next_interpreter)) return CB_WALK_UNFOUND;
  if (another) return CB_WALK_SEVERAL;
  if (!read_word(&search.state, interpreter + python->threads)) return CB_WALK_UNFOUND;
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  search.tid = innermost_pid(task);
  search.is_main = search.tid == innermost_pid(BPF_CORE_READ(task, group_leader));
  for (int i = 0; i < CB_WALK_THREADS && search.state; i++) {
    int end = look_at_thread(python, &search);
    if (end) return end;
  }
  if (search.state || (search.frame && search.frame < CB_WALK_ENDS)) return CB_WALK_UNFOUND;
  return search.frame;
}

static __always_inline void add_walked(struct cb_walk* walk, __u64 code, __u64 instruction) {
  struct cb_walked_frame* to = &walk->frame[index_of(walk->frames, CB_WALK_FRAMES)];
  __u64 behind = instruction - code;
  to->code = code;
  to->instruction = behind < ~0U ? behind : ~0U;
  to->freed = *freed_at(walk->head.pid, code);
  walk->frames++;
}

/* Where userspace found a word in frames, and how far the verifier lets it be. */
#define FRAME_WORDS (CB_PYTHON_FRAME / 8)
#define frame_word(words, index) ((words)[at_most(index, FRAME_WORDS - 1)])

/* Adds a frame, if it is Python's, and returns the next; 0: there is none, or the walk ends here.
 */
__noinline __u64 add_frame(const struct cb_python_process* python, struct cb_walk* walk,
                           __u64 frame) {
  __u64 words[FRAME_WORDS] = {};
  if (!python || !walk) return 0;
  if (bpf_probe_read_user(words, sizeof(words), (const void*)frame)) {
    walk->end = CB_WALK_UNREAD;
    return 0;
  }
  __u64 owner = frame_word(words, python->owner / 8) >> python->owner % 8 * 8 & 0xff;
  if (owner < python->owners) {
    if (walk->frames == CB_WALK_FRAMES) {
      walk->cut = 1;
      return 0;
    }
    add_walked(walk, frame_word(words, python->code) & ~CB_CODE_TAG,
               frame_word(words, python->instruction));
  }
  return frame_word(words, python->previous);
}

/* The walk itself. */
__noinline int walk_frames(__u32 pid, __u32 tid, __u32 sp) {
  __u64 frame = innermost_frame(pid);
  if (!frame) return 0;
  struct cb_python_process* python = bpf_map_lookup_elem(&pythons, &pid);
  if (!python) frame = CB_WALK_EARLY;
  struct ids ids = {pid, tid};
  struct cb_walk* walk = begin_walk(ids, sp);
  if (!walk) return 0;
  if (frame < CB_WALK_ENDS) {
    walk->end = frame;
    frame = 0;
  }
  for (int i = 0; i < CB_WALK_STEPS && frame; i++) frame = add_frame(python, walk, frame);
  if (frame) walk->cut = 1;
  submit(walk);
  return 0;
}

static __always_inline int walk_ends(struct pt_regs* ctx, const __u64* cookie) {
  __u64 now = bpf_ktime_get_ns();
  struct ids ids = current_ids();
  if (!is_traced(ids.pid)) return 0;
  __u32 sp = PT_REGS_SP(ctx) - RETURN_POPS;
  __u64 began = cookie ? *cookie : let_go_counted(call_key(ids.tid, sp), plan_of(ctx).function);
  if (began && now - began >= slow_ns) walk_frames(ids.pid, ids.tid, sp);
  return 0;
}

#endif
