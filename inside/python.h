/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Python interpreter in this process, as far as a thread's frames need it. */
#ifndef CUDABPF_INSIDE_PYTHON_H
#define CUDABPF_INSIDE_PYTHON_H

#include "cudabpf/python_layout.h"
#include "inside.h"

struct ci_python {
  struct cb_python_layout at;
  __u64 (*thread_state)(void);      /* this thread's; 0: it runs no Python */
  __u64 (*first_interpreter)(void); /* the one that was made last */
  __u64 (*main_interpreter)(void);  /* the one that was made first */
  int (*is_finalizing)(void);
  __u64 code_type, text_type, bytes_type;
  char version[16];
};

HIDDEN bool ci_python_is_loaded(void);
/* Why its lines cannot be recorded, for the trace. Null: they can. */
HIDDEN const char* ci_find_python(struct ci_python* python);

/* A frame whose code is known to be what it should be. */
struct ci_python_frame {
  __u64 code, instruction;
};

static inline __u64 ci_word_at(__u64 address) { return *(const __u64*)address; }

/* The thread's innermost frame, of whatever owner; 0: there is none. */
static inline __u64 ci_innermost_frame(const struct ci_python* python, __u64 state) {
  if (python->at.holder) state = ci_word_at(state + python->at.holder);
  return state ? ci_word_at(state + python->at.current) : 0;
}

static inline __u64 ci_frame_word(const struct ci_python* python, __u64 frame,
                                  enum cb_in_frame which) {
  return ci_word_at(frame + python->at.in_frame[which]);
}

static inline bool ci_is_python_frame(const struct ci_python* python, __u64 frame) {
  return *(const __u8*)(frame + python->at.in_frame[CB_FRAME_OWNER]) < python->at.owners;
}

enum ci_frames {
  CI_NO_FRAMES,
  CI_FRAMES_SOUND,
  CI_FRAMES_WRONG, /* they are not what the layout says */
};
/* Walks the innermost frames, whatever memory holds: the kernel reads it. */
HIDDEN enum ci_frames ci_look_at_frames(const struct ci_python* python, __u64 state);

/* ----- what a frame says (python_text.c). These read only objects of the right type, as far as
 * they reach. */

/* Describes the frame: cb_stack_frame and its texts, at most `most` bytes. Returns the size; 0:
 * there is no room. `sound`: false if an object is of a type that it must not have. */
HIDDEN __u32 ci_describe_frame(const struct ci_python* python, struct ci_python_frame frame,
                               __u8* to, __u32 most, bool* cut, bool* sound);

#endif
