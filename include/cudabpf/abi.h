/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the kernel side writes and userspace reads. Included by both; every width is fixed and every
 * size asserted by both compilers, because a difference would be silent.
 *
 * A call makes two records, at entry and at return, and userspace pairs them by thread and stack
 * pointer. So the hot path has no map to fill, to lose a pairing in, or to clean up.
 */
#ifndef CUDABPF_ABI_H
#define CUDABPF_ABI_H

#ifdef __cplusplus
#include <linux/types.h>
namespace cudabpf::abi {
#define CB_STATIC_ASSERT static_assert
#else
#define CB_STATIC_ASSERT _Static_assert
#endif

enum cb_kind {
  CB_ENTRY = 1,       /* a call began: cb_head, args, struct bytes, string bytes */
  CB_RETURN = 2,      /* a call ended: cb_head, then the words it wrote through its out-pointers */
  CB_NAME = 3,        /* a kernel's name, read from its handle: cb_name */
  CB_START = 4,       /* first CUDA call of a process not yet known: cb_process */
  CB_FORK = 5,        /* cb_process of the child; ppid is the parent */
  CB_EXEC = 6,        /* cb_process */
  CB_EXIT = 7,        /* the last thread of a process has gone: cb_process */
  CB_THREAD_EXIT = 8, /* cb_head alone */
  CB_DRIVER = 9,      /* an operation on one of the NVIDIA driver's devices began: cb_driver */
  CB_DRIVER_RETURN = 10, /* it ended: cb_driver_return */
  CB_INTERRUPT = 11,     /* the driver has done work for no process: cb_interrupt */
  CB_XID = 12,           /* the driver tells of a GPU's error: cb_xid */
};

enum cb_flag {
  CB_STRING_CUT = 1,   /* the string was longer than the record holds */
  CB_READ_FAULT = 2,   /* memory that an argument points to could not be read */
  CB_OUT_LOST = 4,     /* the out-pointer was not kept: attached in mid-call, or the map was full */
  CB_INDIRECT = 8,     /* an ioctl through NV_ESC_IOCTL_XFER_CMD: `inner` and `inner_size` hold */
  CB_STATUS_READ = 16, /* `status` holds */
  CB_RETURN_UNSEEN =
      32, /* of an entry: its return will not be told, since watching it would kill */
};

/* Every record begins so. */
struct cb_head {
  __u64 ts; /* CLOCK_MONOTONIC */
  __u32 pid;
  __u32 tid;
  __u32 sp;    /* low half of the stack pointer at the call's entry: what pairs its two records */
  __u32 drops; /* records that this thread (by a hash of its id) has lost so far: where it differs
                  between two records, something between them is missing */
  __u16 function; /* index into the functions of the probe set */
  __u8 kind;      /* enum cb_kind */
  __u8 flags;     /* enum cb_flag */
  union {
    __s32 result; /* CB_RETURN: the CUresult */
    struct {      /* CB_ENTRY: what follows the head */
      __u8 nargs; /* words of 8 bytes */
      __u8 struct_size;
      __u16 string_size; /* the final NUL counted */
    };
  };
};

#define CB_MAX_ARGS 11 /* cuLaunchKernel has as many */
#define CB_MAX_OUTS 2
#define CB_MAX_STRUCT 200
#define CB_SHORT_STRING 208 /* tried first; nearly all fit. The BPF stack is small */
#define CB_LONG_STRING 4096

struct cb_name {
  struct cb_head head; /* string_size bytes follow; none where the memory could not be read */
  __u64 handle;
};

#define CB_COMM 16
#define CB_CGROUP_NAME 128
#define CB_CMDLINE 512
struct cb_process {
  struct cb_head head; /* result: the status as wait(2) gives it, for CB_EXIT */
  __u32 ppid;
  __u32 uid;
  __u64 start_time; /* CLOCK_BOOTTIME */
  __u64 cgroup_id;
  __u32 ns_pid; /* the pid inside its own pid namespace */
  __u32 cmdline_size;
  char comm[CB_COMM];               /* ends at the first NUL; what follows is stale */
  char cgroup_name[CB_CGROUP_NAME]; /* likewise; the leaf's name only */
  char cmdline[CB_CMDLINE];         /* NUL-separated arguments, as far as they fit */
};

/* What is asked of the driver; in cb_head.function. */
enum cb_driver_op {
  CB_IOCTL = 1,
  CB_OPEN = 2,
  CB_CLOSE = 3,
  CB_MMAP = 4,
  CB_POLL = 5,
  CB_FAULT = 6, /* a page of one of its mappings was touched and is not there */
  /* From here on no process asks. */
  CB_ISR = 7,         /* an interrupt, at once */
  CB_BOTTOM_HALF = 8, /* and in its thread */
  CB_GPU_FAULTS = 9,  /* pages that a GPU has touched are brought to it */
};

#define CB_MAX_PARAMS 256
struct cb_driver {
  struct cb_head head;
  __u32 device;     /* major << 20 | minor, as the kernel has it */
  __u32 command;    /* of an ioctl; a fault: 1 if the page is to be written */
  __u64 argument;   /* ioctl: the address of its struct; mmap: the length; fault: the address */
  __u32 inner;      /* CB_INDIRECT: the real escape's number */
  __u32 inner_size; /* and the size of its struct */
  __u8 structure[CB_MAX_STRUCT];  /* the ioctl's; the head's struct_size bytes of it are read */
  __u8 parameters[CB_MAX_PARAMS]; /* that the struct points to; the head's string_size bytes */
};

struct cb_driver_return {
  struct cb_head head;
  __s64 result; /* of the system call */
  __u32 status; /* CB_STATUS_READ: one that lies farther in the struct than CB_MAX_STRUCT */
  __u32 reserved;
  __u8 structure[CB_MAX_STRUCT]; /* as the driver left it; the head's struct_size bytes of it */
};

struct cb_interrupt {
  struct cb_head head; /* ts: when it ended; tid: the CPU, pid: 0 */
  __u64 began;
};

struct cb_xid {
  struct cb_head head; /* of whoever was running; the message may name another process */
  __u32 number;
  __u32 reserved;
  char device[32];   /* a PCI address; ends at the first NUL */
  char message[248]; /* likewise */
};

CB_STATIC_ASSERT(sizeof(struct cb_interrupt) == 40, "cb_interrupt");
CB_STATIC_ASSERT(sizeof(struct cb_xid) == 320, "cb_xid");
CB_STATIC_ASSERT(sizeof(struct cb_driver) == 512, "cb_driver");
CB_STATIC_ASSERT(sizeof(struct cb_driver_return) == 248, "cb_driver_return");

/* What the kernel side must know of an ioctl to read its struct. Escapes are found by their number,
 * UVM's by their command, of which 0x3000000N stands at CB_UVM_SPECIAL + N. */
struct cb_ioctl_plan {
  __u16 size;          /* of the struct; 0: the ioctl's number tells */
  __u16 status_at;     /* where a status lies that is farther than CB_MAX_STRUCT; 0: nowhere */
  __u8 follow_at;      /* where a pointer to parameters lies; 0: there is none */
  __u8 follow_size_at; /* where their size lies, in 4 bytes; 0: not told, read what can be */
  __u16 follow_max;    /* read no more of them than this, at most CB_MAX_PARAMS */
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
/* A device is the driver's if (its number & mask) == device. */
struct cb_driver_device {
  __u32 device;
  __u32 mask;
  __u32 node; /* CB_NODE_NONE: the list ends here */
};
#define CB_DRIVER_DEVICES 16

/* Where the fields of the tracepoint nvidia:nvidia_dev_xid lie. */
struct cb_xid_layout {
  __u16 device_at, number_at, message_at;
};

CB_STATIC_ASSERT(sizeof(struct cb_head) == 32, "cb_head");
CB_STATIC_ASSERT(sizeof(struct cb_name) == 40, "cb_name");
CB_STATIC_ASSERT(sizeof(struct cb_process) == 720, "cb_process");

/* The plan of a function: what its programs read. It travels as the probe's cookie, so that the hot
 * path looks nothing up. Arguments are numbered by their integer word: registers first, then stack.
 */
#define CB_NO_ARG 15
struct cb_plan {
  __u64 function : 16;
  __u64 nargs : 4;        /* words to record, at most CB_MAX_ARGS */
  __u64 string_arg : 4;   /* a C string to read at entry */
  __u64 struct_arg : 4;   /* a struct (or an array of words) to read at entry */
  __u64 struct_words : 5; /* its size in words, at most CB_MAX_STRUCT / 8 */
  __u64 count_arg : 4;    /* for an array: the argument that counts its words */
  __u64 out0 : 4;         /* out-pointers to follow at return, if the call succeeded */
  __u64 out1 : 4;
  __u64 out0_narrow : 1; /* it points to 4 bytes, not 8 */
  __u64 out1_narrow : 1;
  __u64 handle_arg : 4;    /* the kernel that a launch launches */
  __u64 forgets_names : 1; /* handles may be reused after this call */
  __u64 entry_only : 1;    /* no record of its return is wanted */
};
CB_STATIC_ASSERT(sizeof(struct cb_plan) == 8, "cb_plan");

/* Whose calls are recorded, besides those of processes already listed in `traced`. */
enum cb_selection {
  CB_SELECT_LISTED,
  CB_SELECT_ALL,
  CB_SELECT_CGROUP,
};

/* Counters, a block per CPU: entered = emitted + the five drops. Kept with atomic adds, since a
 * program on a uprobe may be preempted. */
enum cb_counter {
  CB_ENTERED,
  CB_EMITTED,
  CB_DROPPED_ENTRY,
  CB_DROPPED_RETURN,
  CB_DROPPED_PROCESS,
  CB_DROPPED_NAME,
  CB_DROPPED_DRIVER,
  CB_COUNTERS = 8,
};
#define CB_MAX_CPUS 1024 /* higher ones share, harmlessly */
#define CB_PID_LIMIT 4194304
#define CB_DROP_SLOTS 4096
#define CB_NAME_SLOTS 8192
#define CB_NAME_EPOCHS 8192

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
