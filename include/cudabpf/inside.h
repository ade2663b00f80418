/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the library inside a traced process (inside/) and cudabpf (src/collect/inside) share: how
 * they meet, what the library is to record, and the rings that its records travel in. C and
 * C++; each side takes what the other wrote for hostile.
 *
 * The library knows no table and no ELF file: cudabpf reads the file of libcuda, and of each other
 * library that is traced, decides what is recorded, and decodes the first instructions. The library
 * checks that memory holds the bytes that cudabpf read, and writes the jumps.
 */
#ifndef CUDABPF_INSIDE_H
#define CUDABPF_INSIDE_H

#include "cudabpf/abi.h"
#include "cudabpf/ranges.h"
#include "cudabpf/stacks.h"
#include "cudabpf/taping.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

#define CI_VERSION 15

/* In the traced program's environment. */
#define CI_INJECTION "CUDA_INJECTION64_PATH" /* the library that libcuda loads in cuInit */
#define CI_LISTENER "CUDABPF_LISTENER"       /* the path of cudabpf's socket */
#define CI_NEXT "CUDABPF_NEXT_INJECTION"     /* what CUDA_INJECTION64_PATH was: loaded after ours */
/* The same for what NVTX loads where a program first names a range. */
#define CI_NVTX_INJECTION "NVTX_INJECTION64_PATH"
#define CI_NVTX_NEXT "CUDABPF_NEXT_NVTX_INJECTION"

/* Where there is no CUDABPF_LISTENER, the library starts `cudabpf CI_READER PID`, which writes the
 * path of its socket to this descriptor when it is ready. */
#define CI_READER "inside-reader"
#define CI_READY_FD 3

/* ----- meeting. A connection (SOCK_SEQPACKET) for each libcuda of each process, for each other
 * traced library that it has loaded, for each child that makes its first call after a fork, and for
 * one that names a range before its cuInit: one ci_hello, one ci_answer, one ci_done. A process
 * that cannot ask, gets no answer or cannot take it sends ci_given_up instead of ci_done, and is
 * not recorded. One that ends sends only ci_hello; its connection is closed when its trace is
 * whole. */

enum ci_reason {
  CI_LOADED = 1,  /* a libcuda, or another library, has been loaded; its file comes along */
  CI_FORKED = 2,  /* a child has its parent's jumps, but no room yet */
  CI_LEAVING = 3, /* the process ends, and may take with it the cudabpf that it has started */
  CI_GIVEN_UP = 4,
  CI_STOPPED = 5, /* a thread stands at a launch, and waits for orders: taping.h */
  CI_NAMES = 6,   /* the program has ranges of its own, and has not called cuInit yet */
};

struct ci_hello {
  __u32 version;
  __u32 reason; /* enum ci_reason */
  __u32 pid;    /* as the process itself knows them */
  __u32 tid;
  __u32 has_memory; /* the process has got shared memory by an earlier hello */
  __u16 library;    /* which one has been loaded: its place in ci_libraries; 0: a libcuda */
  __u16 late;       /* it was found after the program had called the driver */
};

/* Its size is that of no ci_done with CI_GIVEN_UP sites. */
struct ci_given_up {
  __u32 version;
  __u32 reason;  /* CI_GIVEN_UP */
  char comm[16]; /* of the thread: when cudabpf reads this, the process may have ended */
};

struct ci_answer {
  __u32 version;
  __u32 traced;      /* 0: record nothing, and do not ask again */
  __u32 sites;       /* how many there are in the file that comes with this */
  __u32 gpu;         /* enum cb_gpu_times_of; 0: what GPUs do is not recorded */
  __u64 memory_size; /* of the shared memory that comes with this; gives its rings' size; 0: none
                        comes */
  __u64 gpu_window;  /* how long, in each period, GPU times are recorded, in ns; 0: always */
  __u64 gpu_period;
  __u64 tape_size; /* of the memory for a capture (struct ci_tape); 0: none comes */
  __u32 python;    /* calls are recorded with the program's Python stacks */
  __u32 reserved;
  /* Descriptors, in this order: the shared memory, if memory_size; the capture's, if tape_size; the
   * sites (struct ci_site[]), if any. */
};

/* What became of a site. */
enum ci_outcome {
  CI_PATCHED,
  CI_DIFFERS, /* memory does not hold the bytes of the file */
  CI_TOO_FAR, /* no room for its copy within reach of a jump */
  CI_REFUSED, /* the page could not be made writable, or a debugger is attached */
};

#define CI_MAX_SITES 4096
struct ci_done {
  __u32 version;
  __u32 sites;
  __u8 outcomes[CI_MAX_SITES]; /* enum ci_outcome; `sites` of them are sent */
};

/* A function to record. Its first instruction stays where it is, because a uprobe may be put on it
 * later; the jump comes behind it. The instructions that the jump covers run from a copy, which
 * cudabpf has prepared for any address. */
enum ci_stack {
  CI_STACK_NONE = 0,
  CI_STACK_TOO = 1,   /* calls are recorded with their stacks */
  CI_STACK_ALONE = 2, /* only their stacks are: the kernel reports the calls */
};
#define CI_MAX_CODE 32
#define CI_MAX_FIXED 3
#define CI_USUAL_ABOVE 14
#define CI_MAX_ABOVE 64
struct ci_site {
  __u64 offset; /* in the library's file */
  struct cb_plan plan;
  struct cb_read reads[CB_MAX_READS]; /* until CB_READ_NOTHING */
  __u8 launch;                        /* it launches a kernel, whose name is read if it is new */
  __u8 stack;                         /* enum ci_stack */
  __u8 looks;                         /* a library that is new in the process calls this early */
  __u8 describes;                     /* it is given cuBLASLt's descriptors */
  __u8 kept;                          /* length of the first instruction */
  __u8 moved;                         /* length of the whole instructions that the jump covers */
  __u8 copied;                        /* length of their copy, which may be longer */
  __u8 stored; /* offset of the store that writes the jump: behind the function's first byte */
  /* Where in the copy 32-bit displacements from RIP lie, in order; 0: there are no more. They hold
   * for a copy at the function's entry: the distance of the copy before it is to be added. */
  __u8 fix_at[CI_MAX_FIXED];
  __u8 of_driver; /* a function of the driver's: only what these are given is captured */
  __s32 pushed;   /* by how much the first instruction lowers the stack pointer */
  __u32 above; /* how many words above the return address are handed on: at least CI_USUAL_ABOVE */
  struct ci_taped taped;
  /* Where in the file the functions lie that say the stream and the mode of the handle that it is
   * given; 0: it is not asked about. */
  __u64 stream_of, math_of;
  __u8 code[CI_MAX_CODE]; /* the bytes from the function's entry on; `moved` of them are valid */
  __u8 copy[CI_MAX_CODE]; /* `copied` of them are valid */
};
#define CI_JUMP 5        /* length of the jump that is written */
#define CI_STORE 8       /* the jump is written by one store of this many bytes, */
#define CI_STORE_LINE 16 /* which must not cross a line of this many */

CB_STATIC_ASSERT(sizeof(struct ci_hello) == 24, "ci_hello");
CB_STATIC_ASSERT(sizeof(struct ci_given_up) == 24, "ci_given_up");
CB_STATIC_ASSERT(sizeof(struct ci_answer) == 56, "ci_answer");
CB_STATIC_ASSERT(sizeof(struct ci_site) == 192, "ci_site");

/* ----- the shared memory: a sealed memfd for each process, mapped by both.
 *   struct ci_shared; struct ci_ring[CI_RINGS]; struct ci_driver at CI_DRIVER_AT; struct
 * ci_libraries at CI_LIBRARIES_AT; CI_RINGS times the size of a ring from CI_RINGS_AT on. */

/* A ring's size is a power of two. By default it holds what a thread that makes 1.4 million calls a
 * second records while the reader pauses twice. */
#define CI_RING_SIZE (4u << 20)
#define CI_LEAST_RING (64u << 10)
#define CI_RINGS 1024
#define CI_DRIVER_AT (128ul + CI_RINGS * 192ul)
#define CI_LIBRARIES_AT (CI_DRIVER_AT + 4296ul)
#define CI_RINGS_AT (50ul * 4096)

enum ci_ring_state {
  CI_FREE = 0,
  CI_USED = 1, /* the thread `tid` writes to it */
  CI_LEFT = 2, /* its thread has gone; cudabpf frees it when it has read all of it */
};

/* Written by one thread, read by cudabpf. A number on its way from one to the other is stored with
 * release and loaded with acquire. */
struct ci_ring {
  /* by the library */
  __u32 state; /* enum ci_ring_state; cudabpf alone makes CI_LEFT CI_FREE */
  __u32 tid;   /* as the process knows it */
  __u64 head;  /* bytes written so far */
  __u32 drops; /* records that this thread has lost so far */
  __u32 reserved;
  __u64 counters[CB_COUNTERS]; /* enum cb_counter, of all threads that have had this ring */
  __u8 apart[16];              /* the reader's part is in a cache line of its own */
  /* by cudabpf */
  __u64 tail; /* bytes read so far */
  __u8 padding[56];
};

/* Entries stop first, then returns: so a call that is under way ends in the trace, too. */
enum ci_on {
  CI_NOTHING = 0,
  CI_RETURNS = 1,
  CI_ALL = 2,
};

/* What a record's time is. */
enum ci_clock {
  CI_MONOTONIC = 0, /* CLOCK_MONOTONIC, as in the kernel's records */
  CI_TICKS = 1,     /* the processor's time stamp counter, which cudabpf converts */
};

struct ci_shared {
  /* by cudabpf */
  __u32 version;
  __u32 on;    /* enum ci_on */
  __u32 clock; /* enum ci_clock; before the process has the shared memory */
  __u32 reads; /* how often the rings have been read */
  /* by the library: how many rings, from the first, have ever been used */
  __u32 used;
  __u32 reserved;
  /* by the library, by atomic adds: losses of threads that found no free ring */
  __u64 counters[CB_COUNTERS];
  __u8 padding[16];
};

/* Which of libcuda's operations on the driver's devices to record. By cudabpf, before the process
 * has the shared memory. */
struct ci_driver {
  __u32 recorded; /* 0: nothing */
  __u32 reserved;
  struct cb_driver_device devices[CB_DRIVER_DEVICES];
  struct cb_ioctl_plan escape_plans[CB_IOCTL_PLANS];
  struct cb_ioctl_plan uvm_plans[CB_IOCTL_PLANS];
};

/* The names of the libraries that are traced besides libcuda, such as libnccl.so, whatever version
 * follows; empty: none. By cudabpf, before the process has the shared memory. */
#define CI_LIBRARIES 8
#define CI_LIBRARY_NAME 32
struct ci_libraries {
  char names[CI_LIBRARIES][CI_LIBRARY_NAME]; /* each ends with a NUL */
};

/* Before each record in a ring, at a multiple of 8. */
struct ci_slot {
  __u32 size; /* of the record; the next slot begins at the next multiple of 8 */
  __u32 skip; /* 1: no record: the ring's end was too near, go on at its beginning */
};

CB_STATIC_ASSERT(sizeof(struct ci_ring) == 192, "ci_ring");
CB_STATIC_ASSERT(sizeof(struct ci_shared) == 128, "ci_shared");
CB_STATIC_ASSERT(sizeof(struct ci_driver) == 4296, "ci_driver");
CB_STATIC_ASSERT(CI_LIBRARIES_AT == CI_DRIVER_AT + sizeof(struct ci_driver) &&
                     CI_LIBRARIES_AT + sizeof(struct ci_libraries) <= CI_RINGS_AT,
                 "the shared memory");
CB_STATIC_ASSERT(sizeof(struct ci_slot) == 8, "ci_slot");

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
