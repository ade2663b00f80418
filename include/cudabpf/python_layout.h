/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How CPython lays out what a thread's frames are found by. It publishes no layouts for 3.11 and
 * 3.12: they are in its internal headers, and do not change within a version. From 3.13 on they are
 * at the start of _PyRuntime (struct _Py_DebugOffsets), but what values mean is not, so only
 * versions that are known are followed. Whoever walks frames takes them from here: the library
 * inside a process, and cudabpf for its programs in the kernel. */
#ifndef CUDABPF_PYTHON_LAYOUT_H
#define CUDABPF_PYTHON_LAYOUT_H

#ifndef __bpf__ /* there, vmlinux.h has the types */
#include <linux/types.h>
#endif

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

enum cb_in_frame { CB_FRAME_CODE, CB_FRAME_PREVIOUS, CB_FRAME_INSTRUCTION, CB_FRAME_OWNER };
enum cb_in_code {
  CB_CODE_FILE,
  CB_CODE_FUNCTION,
  CB_CODE_LINES,
  CB_CODE_FIRST_LINE,
  CB_CODE_INSTRUCTIONS
};

/* Offsets in the interpreter's structs. */
struct cb_python_layout {
  __u16 current;                  /* in the thread's state, or what that points to at `holder` */
  __u16 holder;                   /* 0: the thread's state itself */
  __u16 in_frame[4];              /* enum cb_in_frame */
  __u16 in_code[5];               /* enum cb_in_code */
  __u16 ascii_size, compact_size; /* of a string, before its characters */
  __u8 owners;                    /* frames with owners from this one on are not Python's */
  /* Where the states of the threads are listed. */
  __u32 interpreters;     /* in _PyRuntime: the interpreter that was made last */
  __u32 next_interpreter; /* in an interpreter: the one made before */
  __u32 threads;          /* in an interpreter: the thread's state that was made last */
  __u32 previous_thread;  /* in a thread's state: the one made after it, and behind that word */
  __u32 native_id;        /* the one made before; which thread it is of, by the kernel's id */
};
#define CB_NO_OWNERS 0xff  /* all frames are Python's */
#define CB_CODE_TAG 3ULL   /* bits of a reference to an object that are not its address */
#define CB_INSTRUCTION 2   /* bytes of an instruction without arguments */
#define CB_PYTHON_FRAME 80 /* bytes that every frame has at least */

/* The same in all versions whose layout is known. */
#define CB_OBJECT_TYPE 8
#define CB_OBJECT_SIZE 16
#define CB_TEXT_STATE 32
#define CB_BYTES_CONTENT 32
#define CB_TYPE_DEALLOCATES 48

static const struct cb_python_layout cb_python_3_11 = {
    .current = 8,
    .holder = 56,
    .in_frame = {32, 48, 56, 69},
    .in_code = {112, 128, 136, 72, 184},
    .ascii_size = 48,
    .compact_size = 72,
    .owners = CB_NO_OWNERS,
    .interpreters = 40,
    .next_interpreter = 0,
    .threads = 16,
    .previous_thread = 0,
    .native_id = 160,
};
static const struct cb_python_layout cb_python_3_12 = {
    .current = 0,
    .holder = 56,
    .in_frame = {0, 8, 56, 70},
    .in_code = {112, 128, 136, 68, 192},
    .ascii_size = 40,
    .compact_size = 56,
    .owners = 3, /* FRAME_OWNED_BY_CSTACK */
    .interpreters = 40,
    .next_interpreter = 0,
    .threads = 72,
    .previous_thread = 0,
    .native_id = 144,
};

/* ----- what 3.13 and 3.14 publish: words, of which the first is a cookie */

#define CB_PYTHON_PUBLISHED 64                 /* as many of them as are looked at */
#define CB_PYTHON_COOKIE 0x7970677562656478ULL /* "xdebugpy" */

/* Where these are, in words from the cookie on: two offsets, and three structs of them. The first
 * word of a struct is its size. */
struct cb_python_published {
  __u8 thread, current, frame, code;
};
static const struct cb_python_published cb_python_in_3_13 = {19, 23, 28, 34},
                                        cb_python_in_3_14 = {22, 26, 31, 39};

static inline int cb_python_publishes_list(struct cb_python_layout* at, const __u64* words,
                                           struct cb_python_published place) {
  const __u64 most = 1 << 20;
  enum { INTERPRETERS = 5, NEXT_INTERPRETER = 8, THREADS = 9 };
  enum { PREVIOUS = 1, NEXT, NATIVE_ID = 6 };
  const __u64* thread = words + place.thread;
  if (words[INTERPRETERS] > most || words[NEXT_INTERPRETER] > most || words[THREADS] > most ||
      thread[PREVIOUS] > most || thread[NEXT] != thread[PREVIOUS] + 8 || thread[NATIVE_ID] > most)
    return 0;
  at->interpreters = (__u32)words[INTERPRETERS];
  at->next_interpreter = (__u32)words[NEXT_INTERPRETER];
  at->threads = (__u32)words[THREADS];
  at->previous_thread = (__u32)thread[PREVIOUS];
  at->native_id = (__u32)thread[NATIVE_ID];
  return 1;
}

static inline int cb_python_publishes(struct cb_python_layout* at, const __u64* words,
                                      struct cb_python_published place) {
  enum { PREVIOUS = 1, EXECUTABLE, INSTRUCTION, OWNER = 5 };
  enum { FILE_NAME = 1, QUALIFIED_NAME = 3, LINE_TABLE, FIRST_LINE, INSTRUCTIONS = 9 };
  const __u64 *frame = words + place.frame, *code = words + place.code;
  const __u64 most = 4096;
  __u64 of_frame[] = {frame[EXECUTABLE], frame[PREVIOUS], frame[INSTRUCTION], frame[OWNER]};
  __u64 of_code[] = {code[FILE_NAME], code[QUALIFIED_NAME], code[LINE_TABLE], code[FIRST_LINE],
                     code[INSTRUCTIONS]};
  if (words[place.current] >= most || frame[0] > most || code[0] > most) return 0;
  at->current = (__u16)words[place.current];
  at->holder = 0;
  at->ascii_size = 40;
  at->compact_size = 56;
  at->owners = 3;
  for (unsigned i = 0; i < 4; i++) {
    if (of_frame[i] >= frame[0]) return 0;
    at->in_frame[i] = (__u16)of_frame[i];
  }
  for (unsigned i = 0; i < 5; i++) {
    if (of_code[i] > code[0]) return 0;
    at->in_code[i] = (__u16)of_code[i];
  }
  return cb_python_publishes_list(at, words, place);
}

/* ----- what is refused, and the words for it. Null: nothing is. */

#define CB_OLDEST_PYTHON 0x030b
#define CB_FIRST_WITH_OFFSETS 0x030d
#define CB_NEWEST_PYTHON 0x030e
#define CB_PYTHON_TOO_OLD "its version is older than 3.11"
#define CB_PYTHON_EXPORTS_NOTHING "it does not export what its frames are found by"
#define CB_PYTHON_OFFSETS_WRONG "what it says of its frames is wrong"
#define CB_PYTHON_INTERPRETERS "the process has several interpreters"

/* `version`: as Py_Version has it. */
static inline const char* cb_python_unknown(__u64 version) {
  if (version >> 16 > CB_NEWEST_PYTHON) return "its version is newer than 3.14";
  if (version >> 16 < CB_OLDEST_PYTHON) return CB_PYTHON_TOO_OLD;
  return 0; /* NOLINT(modernize-use-nullptr): this is C, too */
}

static inline int cb_python_has_offsets(__u64 version) {
  return version >> 16 >= CB_FIRST_WITH_OFFSETS;
}

/* The layout of a known version; `runtime`: if it has offsets, the first CB_PYTHON_PUBLISHED words
 * of _PyRuntime. */
static inline const char* cb_python_layout_of(struct cb_python_layout* at, __u64 version,
                                              const __u64* runtime) {
  enum { VERSION_AT = 1, FREE_THREADED_AT };
  if (!cb_python_has_offsets(version)) {
    *at = version >> 16 == CB_OLDEST_PYTHON ? cb_python_3_11 : cb_python_3_12;
    return 0; /* NOLINT(modernize-use-nullptr): this is C, too */
  }
  if (runtime[0] != CB_PYTHON_COOKIE || runtime[VERSION_AT] != version)
    return "it does not say where its frames are";
  if (runtime[FREE_THREADED_AT]) return "it is built without a global lock (free-threaded)";
  if (!cb_python_publishes(
          at, runtime,
          version >> 16 == CB_FIRST_WITH_OFFSETS ? cb_python_in_3_13 : cb_python_in_3_14))
    return CB_PYTHON_OFFSETS_WRONG;
  return 0; /* NOLINT(modernize-use-nullptr): this is C, too */
}

/* "3.11.2" */
static inline void cb_put_python_version(char to[16], __u64 version) {
  unsigned parts[] = {(unsigned)(version >> 24 & 0xff), (unsigned)(version >> 16 & 0xff),
                      (unsigned)(version >> 8 & 0xff)};
  for (unsigned i = 0; i < 3; i++) {
    if (i) *to++ = '.';
    if (parts[i] >= 100) *to++ = (char)('0' + parts[i] / 100);
    if (parts[i] >= 10) *to++ = (char)('0' + parts[i] / 10 % 10);
    *to++ = (char)('0' + parts[i] % 10);
  }
  *to = 0;
}

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
