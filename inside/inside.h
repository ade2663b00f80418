/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The library inside a traced process: what its files share. include/cudabpf/inside.h is what it
 * shares with cudabpf.
 *
 * The law here: a call's path has no lock, no allocation and no system call, except where a thread
 * or a process makes its first call, or where the call was given memory to read that is neither on
 * the thread's stack nor on the heap. What the program gave to a call is never dereferenced unless
 * it is known to be mapped: memory.c.
 */
#ifndef CUDABPF_INSIDE_INSIDE_H
#define CUDABPF_INSIDE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "cudabpf/inside.h"

#define HIDDEN __attribute__((visibility("hidden")))
/* glibc 2.34 gave these functions a new version, which programs in older containers do not have. */
#define OLD_VERSION(function) __asm__(".symver " #function "," #function "@GLIBC_2.2.5")
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ----- a function that has been patched. Stubs and ci_call (call.S) know the first two fields. */

struct ci_entry {
  void* copy;   /* the function's first instructions, then a jump to the rest of it */
  void* common; /* ci_call */
  struct cb_plan plan;
  struct cb_read reads[CB_MAX_READS];
  bool launch;
  bool of_driver;   /* a function of the driver's: only what these are given is captured */
  bool looks;       /* a library that has just been loaded calls this early */
  bool describes;   /* it is given cuBLASLt's descriptors, */
  __u32 shown;      /* of which this generation of the process has shown what lies where */
  const void* code; /* the function */
  /* What says the stream and the mode of the handle of cuBLAS that it is given; null: it has none.
   */
  int (*stream_of)(__u64 handle, __u64* stream);
  int (*math_of)(__u64 handle, __u32* math);
  __u8 stack; /* enum ci_stack */
  __u8 above; /* how many words above the return address its arguments may need */
  struct ci_taped taped;
};

/* What ci_call keeps of a call on the stack; call.S knows the offsets. */
#define CI_REGISTER_ARGS 6
struct ci_frame {
  __u64 args[CI_REGISTER_ARGS];
  struct ci_entry* entry;
  __u64 sp;     /* the stack pointer at the function's entry: the return address lies there */
  __u64 result; /* rax */
  union {
    __u64 outs[CB_MAX_RETURNED]; /* where the words of the return's record are read */
    struct {
      __u64 from, words;
    } array;
  };
  __u64 above; /* how many words above the return address are handed on */
};
CB_STATIC_ASSERT(offsetof(struct ci_frame, entry) == 48 && offsetof(struct ci_frame, sp) == 56 &&
                     offsetof(struct ci_frame, result) == 64 &&
                     offsetof(struct ci_frame, above) == 104,
                 "call.S has these offsets");

/* The call begins. False: its return is not wanted. */
HIDDEN bool ci_enter(struct ci_frame* frame);
HIDDEN void ci_leave(struct ci_frame* frame);
HIDDEN void ci_call(void); /* only to be jumped to, by a stub */

/* ----- the process (process.c) */

enum ci_state {
  CI_UNKNOWN = 0, /* also in a child, right after fork */
  CI_OFF,         /* cudabpf does not want it, or is not there */
  CI_TRACED,
};

/* In memory that a child finds empty, so that it notices that it is one. */
struct ci_process {
  __u32 state; /* enum ci_state */
  __u32 lock;  /* the thread that is looking for cudabpf */
  __u32 pid;
  __u32 generation; /* threads that have kept something from a parent process have an earlier one */
  struct ci_shared* shared;
  struct ci_tape* tape; /* null: no iteration is to be captured */
  __u64 ring_size;      /* in the shared memory */
  __u64 heap;           /* where the memory begins that brk() gives; 0: not known */
  __u32 names_epoch;    /* counts the calls after which handles may be reused */
  __u32 rings;          /* this many, from the first, can be accessed */
  /* How often cudabpf had read at the last look, and when that number last changed. */
  __u32 reads;
  __u64 reads_at;
};
extern HIDDEN struct ci_process* ci_process;

/* Everything else that a thread needs is complete once this is CI_TRACED; another thread may be
 * setting it.
 */
static inline enum ci_state ci_state(void) {
  return (enum ci_state)__atomic_load_n(&ci_process->state, __ATOMIC_ACQUIRE);
}

/* True if the process is traced. Asks cudabpf if this is a child that has not asked. */
HIDDEN bool ci_process_is_traced(void);

/* ----- the cudabpf that reads, if none was started before the program (reader.c) */

/* Starts it, and waits until it is ready. `library` is the path of this library; `listener` becomes
 * the path of its socket. False: it could not be started, which has been reported. */
HIDDEN bool ci_start_reader(const char* library, char* listener, size_t size);
/* Whether the end of this process may also end the cudabpf that it has started. */
HIDDEN bool ci_takes_reader_along(void);
/* Makes libcuda load this library, which has been loaded from the given path, by the program's
 * environment, unless it does so already. */
HIDDEN void ci_ask_to_be_injected(char** environment, const char* given);

/* ----- the thread's ring (ring.c) */

/* What ranges.c knows of a thread. */
#define CI_LEVELS 64
struct ci_ranges {
  __u16 level[CI_LEVELS];             /* how many ranges are pushed, in each of the first domains */
  __u64 named[CB_RANGE_DOMAINS / 64]; /* a bit for each domain whose name is in this ring */
};

struct ci_thread {
  struct ci_ring* ring; /* null: none yet */
  __u8* data;
  __u64 size; /* of the ring: a power of two */
  __u64 head; /* the ring's own, which only this thread writes */
  __u64 tail; /* as it was when last looked at */
  __u64 now;  /* when its last record was made */
  __u32 generation;
  __u32 tid;
  __u64 stack_from, stack_to; /* this part of the stack is known to be mapped */
  bool busy;                  /* a record is being made: a call by a signal's handler is lost now */
  bool calls_itself;          /* what the library calls is not the program's: taping.h */
  bool counted;               /* its outermost call is one of those that a tape's `inside` counts */
  __u32 depth;                /* calls that it is in, one within the other, where they are taped */
  struct ci_ranges ranges;
  struct { /* what the last record of a handle of cuBLAS said, and what was lost by then */
    __u64 handle, stream;
    __u32 math, drops;
  } blas;
  __u64 kept; /* where what its outermost call was given is kept; 0: nowhere */
};
extern HIDDEN _Thread_local struct ci_thread ci_thread __attribute__((tls_model("initial-exec")));

/* Makes the thread ready to write. False: there is no free ring; what is lost is counted. */
HIDDEN bool ci_take_ring(struct ci_thread* thread, enum cb_counter lost);
HIDDEN void ci_watch_threads(void); /* once, before the first ring is taken */

/* ----- memory of the program (memory.c) */

/* True if all of it could be read. `sp` is the stack pointer of the call that it was given to. */
HIDDEN bool ci_read(void* to, __u64 from, __u64 size, __u64 sp);
/* From now on what brk() has given is read directly, if that is certain to be mapped. */
HIDDEN void ci_find_heap(void);
/* ci_read() of several parts, at most CB_MAX_READS, which the kernel reads at once. */
struct ci_part {
  void* to;
  __u64 from, size;
};
HIDDEN bool ci_read_parts(const struct ci_part* parts, unsigned count, __u64 sp);
/* How many words from `at` on can be read, at most `most`, which lie on at most two pages: if the
 * second page is not there, those on the first. `sp` is the stack pointer. */
HIDDEN __u64 ci_words_at(__u64 at, __u64 most, __u64 sp);
/* The string's size with its NUL, or `size` if it is longer; 0: it could not be read. */
HIDDEN __u32 ci_read_string(char* to, __u64 from, __u32 size);

/* ----- what the process has loaded (libraries.c) */

struct ci_segment {   /* a part of a library in memory that is executed */
  __u64 offset, size; /* in the file */
  __u64 address;
};
#define CI_MAX_SEGMENTS 8
struct ci_library {
  const char* path;
  struct ci_segment segments[CI_MAX_SEGMENTS];
  int count;
  __u64 base, dynamic;
  __u64 sealed_from, sealed_to; /* made read-only when it had been relocated */
  __u16 which;                  /* its place in ci_libraries; 0: a libcuda */
  bool late;                    /* it was found after the program had called the driver */
};

/* The library that has code at this address. False: none has. */
HIDDEN bool ci_library_at(__u64 address, struct ci_library* library);
/* Fills in those that are traced besides libcuda and have come since the last search; returns how
 * many. Under the process's lock, and only in a traced process. */
HIDDEN int ci_find_new_libraries(struct ci_library found[CI_LIBRARIES]);
/* True if anything has been loaded since that search. */
HIDDEN bool ci_libraries_have_changed(void);
/* Has those recorded that have come since (process.c). */
HIDDEN void ci_look_for_libraries(void);

/* ----- writing the jumps (patch.c) */

/* Fills in what became of each site. */
HIDDEN void ci_patch(const struct ci_library* library, const struct ci_site* sites, __u32 count,
                     __u8* outcomes);

/* Has the process recorded before its cuInit, if a cudabpf was started before it (process.c). */
HIDDEN void ci_begin_early(void);

/* ----- where the program's Python is (stacks.c) */

/* Looks for Python, which may have been loaded since: under the process's lock. */
HIDDEN void ci_look_for_python(void);
/* The number of the thread's Python stack, which has been described when this returns; 0: it has
 * none, or it is not known. */
HIDDEN __u64 ci_stack_number(struct ci_thread* thread);

/* ----- whose code makes a call (holder.c) */

HIDDEN void ci_look_for_linker(void); /* under the process's lock */
/* The record of the call has been made just now. */
HIDDEN void ci_record_holder(struct ci_thread* thread, const struct ci_frame* frame);

/* ----- operations on the driver's devices (driver.c) */

/* Puts itself between libcuda and the functions by which it calls the driver, if that is recorded.
 */
HIDDEN void ci_watch_imports(const struct ci_library* library);

/* ----- when GPUs were busy (gpu.c) */

/* Which of that is wanted. */
struct ci_gpu_wish {
  __u32 of;             /* enum cb_gpu_times_of; 0: nothing */
  __u64 window, period; /* as in ci_answer */
};
/* Records that from now on. */
HIDDEN void ci_time_gpus(const struct ci_gpu_wish* wish);

/* ----- what cuBLASLt's descriptors and cuBLAS's handles say (descriptors.c) */

/* Records once what lies where in those of the library that has this function. */
HIDDEN void ci_show_descriptors(struct ci_thread* thread, struct ci_entry* entry);
/* Records what is set in the handle of cuBLAS that the call is given, if it is not known. */
HIDDEN void ci_tell_handle(struct ci_thread* thread, const struct ci_frame* frame);

/* ----- the system (system.c): calls that are no cancellation points */

HIDDEN long ci_system(long number, long a, long b, long c, long d, long e, long f);
/* Maps shared memory of some GiB far from libraries, if there is room: beside them, it would take
 * the place within reach of a jump from which a library's functions are recorded. Each place is
 * for one mapping. A negative error number, or the address. */
enum ci_away { CI_AWAY_RINGS = 1, CI_AWAY_TAPE };
HIDDEN long ci_map_away(enum ci_away place, __u64 size, int protection, int flags, int fd);
/* A gap of at least `size` bytes in the address space of which every byte is within reach of a
 * jump from all of [from, to); 0: there is none. */
HIDDEN __u64 ci_find_gap(__u64 from, __u64 to, __u64 size);
/* Where the heap begins that ends there and is mapped from one end to the other; 0: there is none.
 */
HIDDEN __u64 ci_heap_until(__u64 end);
HIDDEN bool ci_has_debugger(void);
/* No signal's handler runs in this thread until they are restored. */
HIDDEN __u64 ci_block_signals(void);
HIDDEN void ci_restore_signals(__u64 before);

#endif
