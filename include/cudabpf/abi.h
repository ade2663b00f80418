/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the kernel side writes and userspace reads. Both include this file; every width is fixed and
 * both compilers assert every size, because a difference would go unnoticed.
 *
 * A call makes two records, at entry and at return, and userspace pairs them by thread and stack
 * pointer. So the hot path has no map to fill or to clean up, nor one that could lose a pairing.
 */
#ifndef CUDABPF_ABI_H
#define CUDABPF_ABI_H

#ifndef __bpf__ /* there, vmlinux.h has the types */
#include <linux/types.h>
#endif
#ifdef __cplusplus
namespace cudabpf::abi {
#define CB_STATIC_ASSERT static_assert
#else
#define CB_STATIC_ASSERT _Static_assert
#endif

enum cb_kind {
  CB_ENTRY = 1,          /* a call began: cb_head, args, bytes of structs, string bytes */
  CB_RETURN = 2,         /* a call ended: cb_head, then the words that were read at return */
  CB_NAME = 3,           /* a kernel's name, read from its handle: cb_name */
  CB_START = 4,          /* the first CUDA call of an unknown process: cb_process */
  CB_FORK = 5,           /* cb_process of the child; ppid is the parent */
  CB_EXEC = 6,           /* cb_process */
  CB_EXIT = 7,           /* the last thread of a process has gone: cb_process */
  CB_THREAD_EXIT = 8,    /* only cb_head */
  CB_DRIVER = 9,         /* an operation on one of the NVIDIA driver's devices began: cb_driver */
  CB_DRIVER_RETURN = 10, /* it ended: cb_driver_return */
  CB_INTERRUPT = 11,     /* the driver has done work for no process: cb_interrupt */
  CB_XID = 12,           /* the driver reports a GPU error: cb_xid */
  CB_GPU_TIMES = 13,     /* whether CUPTI reports GPU times for the process: cb_gpu_times */
  CB_GPU_NAME = 14,      /* the name of a kernel in records that follow: cb_gpu_name */
  CB_GPU_WORK = 15,      /* a GPU has done something: cb_gpu_operation */
  CB_GPU_BATCH = 16,     /* the end of a batch of GPU operations: cb_gpu_batch */
  CB_GPU_WINDOW = 17,    /* GPU times are recorded from now on, or no more: cb_gpu_window */
  CB_RANGE = 18,         /* the program's own ranges, by NVTX: cb_range (ranges.h) */
  CB_STACK = 19,         /* what the number of a stack stands for: cb_stack (stacks.h) */
  CB_CALL_STACK = 20,    /* the stack of a call that began: cb_call_stack */
  CB_PYTHON = 21,        /* whether the process's Python is followed: cb_python */
  CB_LT_LAYOUT = 22,   /* what lies where in cuBLASLt's descriptors: cb_lt_layout (descriptors.h) */
  CB_HOLDER = 23,      /* whose code made the call that began: cb_head, then the path of its file */
  CB_BLAS_HANDLE = 26, /* what cuBLAS says of a handle: cb_blas_handle (descriptors.h) */
  /* What the kernel side says to its source alone: */
  CB_WALK = 24,   /* the Python frames of a call that returns: cb_walk (walks.h) */
  CB_CALLER = 25, /* from where a call was made, of which the source makes CB_HOLDER */
};

enum cb_flag {
  CB_STRING_CUT = 1, /* the string was longer than the record holds */
  CB_READ_FAULT = 2, /* memory that an argument points to could not be read */
  CB_OUT_LOST = 4,   /* the out-pointer was not kept: attached in mid-call, or the table was full */
  CB_INDIRECT = 8,   /* an ioctl through NV_ESC_IOCTL_XFER_CMD: `inner` and `inner_size` are set */
  CB_STACK_KNOWN = 8,    /* an entry: its last word is the number of its stack (stacks.h) */
  CB_STATUS_READ = 16,   /* `status` is set */
  CB_RETURN_UNSEEN = 32, /* an entry: watching its return would kill the program; a thread's exit:
                            if it was killed in the driver, its return was not seen */
  CB_STATUS_UNSEEN = 64, /* an exit whose status is not known */
  CB_PAYLOAD = 128,      /* an entry: behind the structs, where a capture's memory has more of it */
};

/* Every record begins with this. */
struct cb_head {
  __u64 ts; /* CLOCK_MONOTONIC */
  __u32 pid;
  __u32 tid;
  __u32 sp;    /* low half of the stack pointer at the call's entry; pairs the call's two records */
  __u32 drops; /* records that this thread (by a hash of its id) has lost so far: if it differs
                  between two records, something between them is missing */
  __u16 function; /* index into the functions of the probe set */
  __u8 kind;      /* enum cb_kind */
  __u8 flags;     /* enum cb_flag */
  union {
    __s32 result; /* CB_RETURN: the CUresult */
    struct {      /* CB_ENTRY: what follows the head */
      __u8 nargs; /* words of 8 bytes */
      __u8 struct_size;
      __u16 string_size; /* with the final NUL */
    };
  };
};

#define CB_MAX_ARGS 24
#define CB_PLAIN_ARGS 11 /* of a call of which nothing else is read: what cuLaunchKernel has */
#define CB_MAX_OUTS 2    /* a function's out-pointers that are followed */
#define CB_MAX_RETURNED 4
#define CB_MAX_LISTED 32  /* elements of an array: more than a host has GPUs */
#define CB_MAX_STRUCT 232 /* all structs together */
#define CB_ENTRY_WORDS (CB_PLAIN_ARGS + CB_MAX_STRUCT / 8) /* arguments and structs */
#define CB_SHORT_STRING 232 /* tried first; nearly all fit. The BPF stack is small */
#define CB_LONG_STRING 4096

struct cb_name {
  struct cb_head head; /* string_size bytes follow; none if the memory could not be read */
  __u64 handle;
};

#define CB_COMM 16
#define CB_CGROUP_NAME 128
#define CB_CMDLINE 512
struct cb_process {
  struct cb_head head; /* result: for CB_EXIT, the status as wait(2) gives it */
  __u32 ppid;
  __u32 uid;
  __u64 start_time; /* CLOCK_BOOTTIME */
  __u64 cgroup_id;
  __u32 ns_pid; /* the pid inside its own pid namespace */
  __u32 cmdline_size;
  char comm[CB_COMM];               /* ends at the first NUL; what follows is stale */
  char cgroup_name[CB_CGROUP_NAME]; /* the leaf's name; ends at the first NUL too */
  char cmdline[CB_CMDLINE];         /* NUL-separated arguments, as many as fit */
};

/* Operations on the driver's devices; in cb_head.function. */
enum cb_driver_op {
  CB_IOCTL = 1,
  CB_OPEN = 2,
  CB_CLOSE = 3,
  CB_MMAP = 4,
  CB_POLL = 5,
  CB_FAULT = 6, /* a page of one of its mappings was touched and is not there */
  /* From here on the driver works for no process. */
  CB_ISR = 7,         /* an interrupt's immediate handler */
  CB_BOTTOM_HALF = 8, /* its threaded handler */
  CB_GPU_FAULTS = 9,  /* pages that a GPU has touched are brought to it */
};

#define CB_MAX_IOCTL 200
#define CB_MAX_PARAMS 256
struct cb_driver {
  struct cb_head head;
  __u32 device;     /* major << 20 | minor, as the kernel has it */
  __u32 command;    /* ioctl: its command; fault: 1 if the page is to be written */
  __u64 argument;   /* ioctl: the address of its struct; mmap: the length; fault: the address */
  __u32 inner;      /* CB_INDIRECT: the real escape's number */
  __u32 inner_size; /* and the size of its struct */
  __u8 structure[CB_MAX_IOCTL];   /* the ioctl's; the head's struct_size bytes are valid */
  __u8 parameters[CB_MAX_PARAMS]; /* what the struct points to; string_size bytes are valid */
};

struct cb_driver_return {
  struct cb_head head;
  __s64 result; /* of the system call */
  __u32 status; /* CB_STATUS_READ: a status that lies beyond CB_MAX_IOCTL in the struct */
  __u32 reserved;
  __u8 structure[CB_MAX_IOCTL]; /* as the driver left it; the head's struct_size bytes are valid */
};

struct cb_interrupt {
  struct cb_head head; /* ts: when it ended; tid: the CPU, pid: 0 */
  __u64 began;
};

struct cb_xid {
  struct cb_head head; /* the thread that was running; the message may name another process */
  __u32 number;
  __u32 reserved;
  char device[32];   /* a PCI address; ends at the first NUL */
  char message[248]; /* ends at the first NUL */
};

/* What a GPU did; in cb_head.function. */
enum cb_gpu_op {
  CB_GPU_KERNEL = 1,
  CB_GPU_COPY = 2,
  CB_GPU_SET = 3,
  CB_GPU_GRAPH = 4, /* all that one launch of a graph did */
};

enum cb_gpu_times_of {
  CB_GPU_NODES = 1,  /* each node of a graph is reported */
  CB_GPU_GRAPHS = 2, /* each launch of a graph */
};

struct cb_gpu_times {
  struct cb_head head;  /* string_size bytes follow: CUPTI's path, or why there are no times */
  __u32 version;        /* as cuptiGetVersion says */
  __u32 times_of;       /* enum cb_gpu_times_of; 0: no times */
  __u64 window, period; /* how long, in each period, they are recorded, in ns; 0: always */
};

struct cb_gpu_name {
  struct cb_head head; /* string_size bytes follow */
  __u64 name;          /* stands for it in cb_gpu_operation */
};

/* CUPTI reports a thread's GPU operations in the order of their submission, in batches that may
 * come late and out of order. A thread's id may be reused, its lane's number is not. */
struct cb_gpu_operation {
  struct cb_head head;           /* of the thread that reports */
  __u64 began, ended;            /* CLOCK_MONOTONIC; 0: CUPTI has no valid time */
  __u64 size;                    /* of a copy or a fill, in bytes */
  __u64 name;                    /* of a kernel */
  __u32 lane, batch;             /* see cb_gpu_batch */
  __u32 correlation;             /* the same in all operations of one call */
  __u32 context, stream, device; /* by CUPTI's numbers */
  __u32 graph, node;             /* graph: 0 if it is not part of one */
  __u32 grid[3], block[3];
  __u32 shared;
  __u32 direction; /* of a copy: CUpti_ActivityMemcpyKind */
};

struct cb_gpu_batch {
  struct cb_head head;
  __u64 since;       /* when the lane began, CLOCK_MONOTONIC */
  __u64 asked;       /* when its thread asked for room for it: in the call of its first operation */
  __u64 lost;        /* operations that CUPTI has lost */
  __u64 clock_error; /* of the times, in ns */
  __u32 thread;      /* that submitted these operations */
  __u32 lane;        /* that thread, for ever */
  __u32 batch;       /* of the lane, from 0 */
  __u32 operations;  /* operations in the batch, including those that the ring had no room for */
};

/* Where GPU times are recorded only in windows, what is submitted from CB_GPU_OPEN to
 * CB_GPU_CLOSING is recorded; what is submitted in the moments before and after may be. */
enum cb_gpu_window_step {
  CB_GPU_OPENING = 1,
  CB_GPU_OPEN = 2,
  CB_GPU_CLOSING = 3,
  CB_GPU_CLOSED = 4
};
struct cb_gpu_window {
  struct cb_head head;
  __u32 step; /* enum cb_gpu_window_step */
  __u32 reserved;
};

CB_STATIC_ASSERT(sizeof(struct cb_gpu_times) == 56, "cb_gpu_times");
CB_STATIC_ASSERT(sizeof(struct cb_gpu_name) == 40, "cb_gpu_name");
CB_STATIC_ASSERT(sizeof(struct cb_gpu_operation) == 128, "cb_gpu_operation");
CB_STATIC_ASSERT(sizeof(struct cb_gpu_batch) == 80, "cb_gpu_batch");
CB_STATIC_ASSERT(sizeof(struct cb_gpu_window) == 40, "cb_gpu_window");
CB_STATIC_ASSERT(sizeof(struct cb_interrupt) == 40, "cb_interrupt");
CB_STATIC_ASSERT(sizeof(struct cb_xid) == 320, "cb_xid");
CB_STATIC_ASSERT(sizeof(struct cb_driver) == 512, "cb_driver");
CB_STATIC_ASSERT(sizeof(struct cb_driver_return) == 248, "cb_driver_return");

/* What the kernel side must know about an ioctl to read its struct. An escape's number or a UVM
 * ioctl's command is the index, but 0x3000000N is at CB_UVM_SPECIAL + N. */
struct cb_ioctl_plan {
  __u16 size;          /* of the struct; 0: the ioctl's number encodes it */
  __u16 status_at;     /* offset of a status beyond CB_MAX_IOCTL; 0: there is none */
  __u8 follow_at;      /* offset of a pointer to parameters; 0: there is none */
  __u8 follow_size_at; /* offset of their size, 4 bytes; 0: not given, read what can be read */
  __u16 follow_max;    /* the most to read of them, at most CB_MAX_PARAMS */
};
#define CB_IOCTL_PLANS 256
#define CB_UVM_SPECIAL 252
CB_STATIC_ASSERT(sizeof(struct cb_ioctl_plan) == 8, "cb_ioctl_plan");

enum cb_driver_node {
  CB_NODE_NONE,
  CB_NODE_RM,    /* nvidiactl and the GPUs: escapes */
  CB_NODE_UVM,   /* nvidia-uvm */
  CB_NODE_OTHER, /* modeset, caps */
};
/* A device belongs to the driver if (its number & mask) == device. */
struct cb_driver_device {
  __u32 device;
  __u32 mask;
  __u32 node; /* CB_NODE_NONE: the list ends here */
};
#define CB_DRIVER_DEVICES 16

/* Offsets of the fields of the tracepoint nvidia:nvidia_dev_xid. */
struct cb_xid_layout {
  __u16 device_at, number_at, message_at;
};

CB_STATIC_ASSERT(sizeof(struct cb_head) == 32, "cb_head");
CB_STATIC_ASSERT(sizeof(struct cb_name) == 40, "cb_name");
CB_STATIC_ASSERT(sizeof(struct cb_process) == 720, "cb_process");

/* What is read of a call beyond its argument words: rows, followed in order. Each reads memory that
 * a word of the record points to, and puts it into the record, where a later row may find a
 * pointer. The first row that fails ends the reading.
 */
enum cb_read_kind {
  CB_READ_NOTHING, /* the row behind the last */
  CB_READ_STRUCT,  /* at entry */
  CB_READ_ARRAY,   /* the same, but only as many words as the word `count` says */
  CB_READ_INTS,    /* the same, 4 bytes each, by the low half of `count`; for a null pointer none */
  CB_READ_STRING,  /* at entry; the last row */
  CB_READ_RETURN,  /* at return, if the call succeeded; for a null pointer nothing is read */
  CB_READ_ONLY,    /* at return: the rest is read only if the low half of `base` is `size` */
  CB_READ_LIST,    /* as CB_READ_RETURN, but as many words as the low half of the argument `count`
                      says, and zeros may follow; the first row, and the only one at return */
  CB_READ_CONSTANT, /* the arguments of a USDT probe: see static_probes.h */
  CB_READ_REGISTER,
  CB_READ_MEMORY,
};
struct cb_read {
  __u8 kind; /* enum cb_read_kind */
  __u8 base; /* the word with the pointer: an argument's or, in what follows the arguments, one that
                was read at entry; from CB_RETURNED on: one that was read at return */
  __u8 to;   /* the word of its record, of the entry or the return, where it goes to */
  __u8 count;
  __u16 offset; /* from where the pointer points to */
  __u16 size;   /* in bytes; of a string: 0 */
};
#define CB_RETURNED 64
#define CB_MAX_READS 8
#define CB_READS 1024 /* rows of all functions; equal ones share them */
CB_STATIC_ASSERT(sizeof(struct cb_read) == 8, "cb_read");

/* How many elements are read, by an int's word: its upper half is not defined. */
static inline __attribute__((always_inline)) __u64 cb_listed(__u64 count, __u64 most) {
  return (__u32)count < most ? (__u32)count : most;
}

/* BPF's verifier bounds a read's place and its size apart. So beyond the words that a plain call
 * may have, only small structs can be read. */
#define CB_SMALL_STRUCT 64
static inline __attribute__((always_inline)) int cb_read_fits(const struct cb_read* read) {
  if (read->kind == CB_READ_LIST) return read->to == 0 && read->size <= CB_MAX_LISTED * 8;
  if (read->kind >= CB_READ_RETURN) return read->to < CB_MAX_RETURNED;
  if (read->to <= CB_PLAIN_ARGS) return read->size <= CB_MAX_STRUCT;
  return read->kind != CB_READ_STRING && read->size <= CB_SMALL_STRUCT &&
         read->to <= CB_ENTRY_WORDS - CB_SMALL_STRUCT / 8;
}

/* In the CUgraphNodeParams of a conditional node, the offset of the address of its bodies' handles,
 * which the call fills in. At return the node's type is read and, if it is conditional, its first
 * body: the fourth word of the record. */
#define CB_NODE_CONDITIONAL 13
#define CB_NODE_BODIES_AT 32
#define CB_NODE_BODY 3

/* A function's plan: what the programs on it read. It travels as the probe's cookie, so plain calls
 * and launches look nothing up. Arguments are numbered by integer word: registers first, then the
 * stack. */
#define CB_NO_ARG 15
struct cb_plan {
  __u64 function : 16;
  __u64 nargs : 5;          /* words to record, at most CB_MAX_ARGS */
  __u64 reads : 10;         /* in the kernel: its first row; 0: it has none */
  __u64 returns : 1;        /* some of them are read at return */
  __u64 handle_arg : 4;     /* the kernel that a launch launches */
  __u64 config_arg : 4;     /* a launch's struct, which has a row as well, */
  __u64 config_words : 4;   /* and its size */
  __u64 forgets_names : 1;  /* handles may be reused after this call */
  __u64 entry_only : 1;     /* its return is not recorded */
  __u64 size_arg : 4;       /* of a call that is only counted: how many bytes it copies */
  __u64 size_narrow : 1;    /* that argument has 4 bytes, not 8 */
  __u64 call_class : 4;     /* whose times such a call's are added to: CallClass */
  __u64 pending : 4;        /* a result besides 0 after which the out-pointers are read, too */
  __u64 begins_capture : 1; /* it begins a capture; after that, calls of its process are recorded */
  __u64 until_capture : 1;  /* that have this, and are only counted before */
  __u64 holder : 1;         /* whose code makes the call is recorded, too */
};
CB_STATIC_ASSERT(sizeof(struct cb_plan) == 8, "cb_plan");

/* Which processes' calls are recorded, besides those in `traced`. */
enum cb_selection {
  CB_SELECT_LISTED,
  CB_SELECT_ALL,
  CB_SELECT_CGROUP,
};

/* Counters, one block per CPU: entered = emitted + the drops. They are updated by atomic adds,
 * since a program on a uprobe may be preempted. */
enum cb_counter {
  CB_ENTERED,
  CB_EMITTED,
  CB_DROPPED_ENTRY,
  CB_DROPPED_RETURN,
  CB_DROPPED_PROCESS,
  CB_DROPPED_NAME,
  CB_DROPPED_DRIVER,
  CB_DROPPED_HOLDER,
  CB_DROPPED_STACK,
  CB_KERNEL_COUNTERS, /* what follows is counted only by the library inside a process */
  CB_DROPPED_GPU = CB_KERNEL_COUNTERS,
  CB_DROPPED_RANGE,
  CB_COUNTERS,
};

/* Calls that are only counted, by process and function, on each CPU separately. If metrics are
 * wanted, also their times by process and class, and how many failed by process and result, on all
 * CPUs together. */
struct cb_tally_key {
  __u64 began; /* the process, CLOCK_MONOTONIC: its pid may be used again */
  __u32 pid;
  __u32 what; /* the function as in cb_head, the class or the result */
};
struct cb_tally {
  __u64 calls;   /* that have begun */
  __u64 ended;   /* of these */
  __u64 time_ns; /* of those that have ended */
  __u64 failed;
  __u64 bytes;     /* to be copied, by plan */
  __u64 failed_at; /* the last that failed: when, CLOCK_MONOTONIC, */
  __u64 error;     /* and with what result */
};
#define CB_NOT_READY 600 /* a query's answer, which is no failure */
CB_STATIC_ASSERT(sizeof(struct cb_tally_key) == 16, "cb_tally_key");
CB_STATIC_ASSERT(sizeof(struct cb_tally) == 56, "cb_tally");

#define CB_MOST_COPIED (1ULL << 48) /* a larger size is an error, and would spoil the sum */
/* CUDA's results are smaller. A traced program could return any number, and have no room left. */
#define CB_MOST_RESULT 999
#define CB_OTHER_RESULT 0xffffffffU

/* How many of the calls that have ended took at most 1 us, 4 us, 16 us, ..., and longer. */
#define CB_TIME_LIMITS 13 /* the last is 16.8 s */
#define CB_FIRST_TIME_LIMIT_NS 1000ULL
struct cb_call_times {
  __u64 time_ns;
  __u64 calls[CB_TIME_LIMITS + 1];
};
CB_STATIC_ASSERT(sizeof(struct cb_call_times) == 120, "cb_call_times");

/* How these calls add up, one block per CPU: begun = ended + under way + dropped. */
enum cb_tally_counter {
  CB_TALLY_BEGUN,
  CB_TALLY_DROPPED, /* the map was full: the call is in no tally */
  CB_TALLY_UNTIMED, /* it is in its tally, but its end will not be */
  CB_TALLY_COUNTERS = 8,
};

#define CB_MAX_CPUS 1024 /* CPUs beyond share a block, harmlessly */
#define CB_PID_LIMIT 4194304
#define CB_DROP_SLOTS 4096

/* 2^64 divided by the golden ratio: a product's high bits depend on all bits of the other factor.
 */
#define CB_HASH_FACTOR 0x9e3779b97f4a7c15ULL

/* Where a CUfunction and a CUkernel keep the pointer to their name. Userspace checks what it finds
 * there before it trusts it. */
#define CB_HANDLE_NAME_AT 8
/* The handles whose names have been sent are kept in a direct-mapped cache, in the kernel and in
 * the library inside a process. A collision sends a name again. */
#define CB_NAME_SLOTS 8192
#define CB_NAME_EPOCHS 8192
#define CB_CAPTURE_MARKS 65536
#define CB_NAME_SLOT(key) ((key) >> 51)
/* `epoch` is incremented when the handles of the process `pid` may be reused. */
static inline __attribute__((always_inline)) __u64 cb_name_key(__u64 handle, __u32 pid,
                                                               __u32 epoch) {
  return (handle * CB_HASH_FACTOR) ^ ((((__u64)pid << 32) | epoch) * 0xc2b2ae3d27d4eb4fULL);
}

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
