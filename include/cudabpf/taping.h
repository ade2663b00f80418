/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How cudabpf and the library inside a process capture an iteration of its work. C and C++.
 *
 * The library keeps what calls were given beyond what their records hold: code that is loaded and,
 * in the captured iteration, parameters and bytes that are copied. It goes into memory that both
 * share, and the call's record says where. Nothing is decided in the process: at a launch, the
 * library stops the launching thread, which connects to cudabpf and then does what it is ordered to
 * (struct ci_order), until it may go on. While it stands, the other threads can be held at their
 * next calls.
 */
#ifndef CUDABPF_TAPING_H
#define CUDABPF_TAPING_H

#include "cudabpf/abi.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

/* ----- what is kept of a function's calls: a site has this */

enum ci_keep {
  CI_KEEP_NOTHING,
  CI_KEEP_LAUNCH,    /* a kernel's parameters and its launch's attributes; may stop there */
  CI_KEEP_GRAPH,     /* nothing, but it may stop there */
  CI_KEEP_CODE,      /* an image and the options for compiling it */
  CI_KEEP_CODE_FILE, /* the same of an image in a file, which may be gone later */
  CI_KEEP_FROM_HOST, /* bytes that are copied to a GPU */
  CI_KEEP_TO_HOST, /* bytes that come from a GPU: at the call's return, or when it is waited for */
  CI_KEEP_EITHER,  /* one of these, as the addresses say */
  CI_KEEP_COPY_2D, /* the same of rows: a CUDA_MEMCPY2D */
  CI_KEEP_COPY_3D, /* or a CUDA_MEMCPY3D says which */
  CI_KEEP_WAIT,    /* at its return, what has come to the host */
  CI_KEEP_NODES,   /* what the nodes of a graph are given */
  CI_KEEP_KERNEL_NODE,    /* what one node is given: a CUDA_KERNEL_NODE_PARAMS_v2, */
  CI_KEEP_KERNEL_NODE_V1, /* its beginning, */
  CI_KEEP_COPY_NODE,      /* a CUDA_MEMCPY3D, */
  CI_KEEP_SET_NODE,       /* a CUDA_MEMSET_NODE_PARAMS, */
  CI_KEEP_ANY_NODE,       /* or a CUgraphNodeParams, which has one of these or a graph */
};

/* Numbers of argument words. */
struct ci_taped {
  __u8 keep;     /* enum ci_keep */
  __u8 at;       /* the kernel, the image, the graph, a node's struct, or the address on the host */
  __u8 size_at;  /* bytes of a copy; the number of options */
  __u8 lists_at; /* a launch's kernelParams; the list of options, behind which come their values */
  __u8 stream_at; /* of a copy or a wait; CI_NO_WORD: its return is enough, or it is for all */
  __u8 to_at;     /* a launch's struct, if it has one; CI_KEEP_EITHER: the address to which it
                     copies, where `at` is that from which */
  __u8 extra_at;  /* a launch's `extra` */
  __u8 waits;     /* when it has returned, the thread has waited for the GPU */
};
#define CI_NO_WORD 255

/* ----- the memory: a sealed memfd for each process, mapped by both. struct ci_tape, the window,
 * then payloads to its end. */

#define CI_WINDOW_AT 4096ul
#define CI_WINDOW_SIZE (64ul << 20)
#define CI_PAYLOADS_AT (CI_WINDOW_AT + CI_WINDOW_SIZE)

enum ci_keeps {
  CI_KEEPS_NOTHING, /* nor ever will; nothing stops or is held any more, and calls cost no more */
  CI_KEEPS_CODE,
  CI_KEEPS_ALL,
};

struct ci_tape {
  /* by cudabpf */
  __u32 keeps; /* enum ci_keeps */
  __u32 held;  /* the thread that stands: others wait for it at their next call. 0: none. A futex */
  __u64 first_stop; /* the launch, by any thread, at which one stops first, from 1; 0: none */
  /* by the library */
  __u32 inside;  /* threads in a call */
  __u32 lost;    /* payloads for which there was no room */
  __u64 used;    /* bytes of payloads so far */
  __u64 pending; /* the payload that was filled in last, of those that wait for their bytes */
};

enum ci_payload_state {
  CI_FILLED = 1,
  CI_PENDING,    /* its bytes come later, if ever */
  CI_ELSEWHERE,  /* not copied: they lie at `from`, in a file's mapping */
  CI_UNREADABLE, /* or not understood */
};

/* Two parts follow, each padded to a multiple of 8 (CI_PADDED): what the call's kind says, and its
 * attributes, options (as pairs of numbers) or struct ci_rows. */
struct ci_payload {
  __u32 state;
  __u32 from_host; /* of a copy: its bytes come from the host */
  __u64 size;      /* bytes of the first part */
  __u64 more;      /* bytes of the second */
  __u64 from;      /* where the first part lies, or comes to, in the process */
  __u64 stream;    /* of a copy that is waited for */
  __u64 next;      /* of those that wait */
};

/* ----- copies of rows: a CUDA_MEMCPY3D, whose memory types are not CI_UNIFIED when it is kept.
 * Bytes on the host are kept row by row, without what lies between them. */

enum ci_memory_type { CI_ON_HOST = 1, CI_ON_DEVICE, CI_ARRAY, CI_UNIFIED }; /* CUmemorytype */

struct ci_rows_side {
  __u64 x, y, z, lod;
  __u32 type, padding; /* enum ci_memory_type */
  __u64 host, device, array, context;
  __u64 pitch, height; /* 0: those of the rows */
};

struct ci_rows {
  struct ci_rows_side from, to;
  __u64 width, height, depth;
};

/* ----- nodes of graphs, as such a payload has them
 *
 * The driver does not say what an executable graph holds. So what the nodes of a graph are given is
 * read when the graph is instantiated, before the program can destroy it.
 *
 * The first part is a struct ci_nodes and then the nodes; the second, edges (struct ci_edge). */

#define CI_MAX_NODES (64u << 10)
#define CI_MAX_EDGES (256u << 10)
#define CI_LAUNCH_ATTRIBUTE 72 /* bytes of a CUlaunchAttribute */
#define CI_MAX_LAUNCH_ATTRIBUTES 64
#define CI_MAX_PARAMETER_BYTES (64u << 10)

enum ci_nodes_fault {
  CI_NODES_COMPLETE,
  CI_NODES_TOO_MANY,   /* or too large */
  CI_NODES_UNREADABLE, /* the driver does not say which there are */
};

struct ci_nodes {
  __u32 count;
  __u32 of_node; /* they are one, and this is what a call gives it; else they are what a graph holds
                  */
  __u32 fault;   /* enum ci_nodes_fault */
  __u32 reserved;
};

/* Three parts follow, each padded: what the node is given, a kernel's parameters in one buffer, and
 * the attributes of its launch. What it is given is a CUDA_KERNEL_NODE_PARAMS_v2, a struct ci_rows,
 * a CUDA_MEMSET_NODE_PARAMS, or the event's handle; of other types, nothing. Nodes of a child graph
 * come somewhere after the node that holds it. */
struct ci_node {
  __u64 handle;
  __u32 type;   /* a CUgraphNodeType */
  __u32 holder; /* the number of the node whose child graph it is in, from 1; 0: it is in none */
  __u32 unreadable;
  __u32 given, parameters, attributes; /* bytes of the parts */
};

struct ci_edge { /* by handles: `to` comes after `from` */
  __u64 from, to;
};

/* ----- orders, by the connection of a thread that stands (CI_STOPPED) */

enum ci_do {
  CI_GO_ON = 1, /* until the a[0]th launch from now on (0: never), of the thread a[2] (0: any); if
                   a[1], until the first from then on before which it has waited for the GPU. No
                   reply */
  CI_IS_DONE,   /* is the stream a[0] done? The reply's result is the driver's: 0 or 600 */
  CI_DRAIN,     /* wait for all work of the current context */
  CI_COPY,      /* a[1] bytes at a[0], of a GPU, to the window at a[2] */
  CI_COPY_HOST, /* the same of the process's own memory */
  CI_MODULE,    /* which module (v[0]) the library a[0] is in the current context */
  CI_KERNEL,    /* what a[0] is: a struct ci_kernel in the window */
  CI_VARIABLE,  /* of the library or, if a[1], the module a[0], by its name in the window: where
                   (v[0]) and its size (v[1]) */
  CI_DEVICE,    /* the current one: a struct ci_device in the window */
};

struct ci_order {
  __u32 version; /* CI_VERSION */
  __u32 what;    /* enum ci_do */
  __u64 a[4];
};

struct ci_reply {
  __u32 version;
  __s32 result; /* the driver's; CI_NO_FUNCTION, CI_NO_MEMORY */
  __u64 v[2];
};
#define CI_NO_FUNCTION (-1) /* the driver does not have it */
#define CI_NO_MEMORY (-2)   /* the process does not have that memory */

#define CI_KERNEL_ATTRIBUTES 16
#define CI_MAX_PARAMETERS 1024
struct ci_kernel {
  __u64 owner; /* the library or module that has it */
  __u32 parameters;
  __u32 has;                              /* attributes that the driver knows: a bit each */
  __s32 attributes[CI_KERNEL_ATTRIBUTES]; /* by CUfunction_attribute */
  struct {
    __u32 offset, size;
  } parameter[CI_MAX_PARAMETERS];
  char name[4096];
};

#define CI_LIMITS 4
struct ci_device {
  char name[96];
  __u8 uuid[16];
  __u32 major, minor;
  __u64 memory;
  __u64 limits[CI_LIMITS]; /* by CUlimit: stack, printf, heap, and one that is not asked for */
};

#define CI_PADDED(size) (((size) + 7) & ~7ull)

CB_STATIC_ASSERT(sizeof(struct ci_taped) == 8, "ci_taped");
CB_STATIC_ASSERT(sizeof(struct ci_tape) == 40, "ci_tape");
CB_STATIC_ASSERT(sizeof(struct ci_payload) == 48, "ci_payload");
CB_STATIC_ASSERT(sizeof(struct ci_rows) == 200, "ci_rows");
CB_STATIC_ASSERT(sizeof(struct ci_nodes) == 16 && sizeof(struct ci_node) == 32, "ci_nodes");
CB_STATIC_ASSERT(sizeof(struct ci_order) == 40 && sizeof(struct ci_reply) == 24, "ci_order");

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
