/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Python stacks of slow calls, which a program in the kernel walks when such a call returns. It
 * reads addresses alone; what lies there is read by userspace, which makes of each walk the records
 * of stacks.h. */
#ifndef CUDABPF_WALKS_H
#define CUDABPF_WALKS_H

#include "cudabpf/abi.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

#define CB_WALK_FRAMES 32   /* of a deeper stack, the innermost */
#define CB_WALK_STEPS 64    /* these, and frames between them that are not Python's */
#define CB_WALK_THREADS 256 /* states of threads that are looked at to find the thread's own */

/* What came of a walk. No frame has so low an address. */
enum cb_walk_end {
  CB_WALKED = 0,
  CB_WALK_ASKS,    /* no walk: the process has made its first call; what does it run? */
  CB_WALK_EARLY,   /* that is not known yet */
  CB_WALK_SEVERAL, /* it has several interpreters */
  CB_WALK_UNFOUND, /* the thread's state is not among those that could be looked at */
  CB_WALK_UNREAD,  /* a frame could not be read */
  CB_WALK_ENDS,
};

struct cb_walked_frame {
  __u64 code;        /* the code object's address */
  __u32 instruction; /* how far behind that; ~0: it is not */
  __u32 freed;       /* cb_code_slot()'s count */
};

struct cb_walk {
  struct cb_head head; /* sp: of the call that returns */
  __u16 end;           /* enum cb_walk_end */
  __u16 frames;        /* the innermost first */
  __u32 cut;           /* 1: there are more around them */
  struct cb_walked_frame frame[CB_WALK_FRAMES];
};

/* What the program in the kernel must know of a process. */
enum cb_python_state {
  CB_PYTHON_ASKED, /* userspace looks at it */
  CB_PYTHON_NONE,  /* it has no Python, or none that is followed */
  CB_PYTHON_KNOWN,
};
struct cb_python_process {
  __u64 interpreters; /* the address of the list's first word */
  __u32 state;        /* enum cb_python_state */
  /* Offsets, as in cb_python_layout; those in frames by words, but the owner's, a byte. */
  __u32 next_interpreter, threads, previous_thread, native_id;
  __u16 holder, current;
  __u8 code, previous, instruction, owner;
  __u8 owners;
  __u8 reserved[7];
};
#define CB_PYTHON_PROCESSES 4096

/* Another code may come to lie where one was freed. So the kernel's side counts each code that is
 * freed, by its address: what userspace reads of a code is that of a walk if the count is the same
 * as it was in the walk. */
#define CB_CODE_SLOTS 8192
static inline __attribute__((always_inline)) __u64 cb_code_slot(__u32 pid, __u64 code) {
  return ((code ^ ((__u64)pid << 40)) * CB_HASH_FACTOR) >> 51;
}

CB_STATIC_ASSERT(sizeof(struct cb_walked_frame) == 16, "cb_walked_frame");
CB_STATIC_ASSERT(sizeof(struct cb_walk) == 552, "cb_walk");
CB_STATIC_ASSERT(sizeof(struct cb_python_process) == 48, "cb_python_process");

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
