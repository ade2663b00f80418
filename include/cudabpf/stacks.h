/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of where in the program's Python calls were made. The library inside a process makes
 * them.
 *
 * A stack has a number in its process, and is described once, before the first call that has it. A
 * call that the library records carries the number in its own record (CB_STACK_KNOWN): the two are
 * lost together, and no lost record can give a call the stack of another. The record of a call that
 * the kernel reports cannot have it: there the library makes a record besides (CB_CALL_STACK),
 * paired with the call by its stack pointer, as a return is. */
#ifndef CUDABPF_STACKS_H
#define CUDABPF_STACKS_H

#include "cudabpf/abi.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

#define CB_STACK_FRAMES 128 /* of a deeper stack, the innermost */
#define CB_STACK_SIZE 16384 /* bytes of all frames: where there is no more room, it is cut */
#define CB_FUNCTION_TEXT 512
#define CB_FILE_TEXT 1024

/* A stack's number is the place where its process keeps it, and how many stacks had a number
 * before. A process forgets a stack when it needs its place for another. */
#define CB_STACK_PLACES 16384
#define CB_STACK_PLACE(number) ((number) & (CB_STACK_PLACES - 1))

struct cb_stack {
  struct cb_head head; /* CB_STRING_CUT: a name was longer than its room */
  __u64 number;
  __u32 size;   /* bytes of frames that follow */
  __u16 frames; /* the innermost first */
  __u16 cut;    /* 1: there are more around them */
};

/* Then its function's name and its file's, without NULs; the next begins at a multiple of 8. */
struct cb_stack_frame {
  __u32 line; /* 0: it has none */
  __u16 function_size;
  __u16 file_size;
};

/* The open call with this stack pointer. */
struct cb_call_stack {
  struct cb_head head;
  __u64 number;
};

/* Whether the process's lines are recorded: before its first stack, and when it ends early. */
struct cb_python {
  struct cb_head head; /* string_size bytes follow: why there are none, or the version */
  __u32 refused;
  __u32 reserved;
};

CB_STATIC_ASSERT(sizeof(struct cb_stack) == 48, "cb_stack");
CB_STATIC_ASSERT(sizeof(struct cb_stack_frame) == 8, "cb_stack_frame");
CB_STATIC_ASSERT(sizeof(struct cb_call_stack) == 40, "cb_call_stack");
CB_STATIC_ASSERT(sizeof(struct cb_python) == 40, "cb_python");

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
