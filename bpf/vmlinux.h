/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kernel's types, but only those that we read. libbpf relocates the structs marked
 * preserve_access_index against the running kernel's BTF; pt_regs is an ABI and must stay as is. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

enum bpf_map_type {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_PERCPU_HASH = 5,
  BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_RB_NO_WAKEUP = 1 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 }; /* of bpf_ringbuf_query */
enum { BPF_NOEXIST = 1 };

struct bpf_pidns_info {
  __u32 pid;
  __u32 tgid;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
      flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
  __u64 regs[31];
  __u64 sp;
  __u64 pc;
  __u64 pstate;
};
struct pt_regs {
  struct user_pt_regs user_regs;
};
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
  unsigned int inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace* ns;
};
struct pid {
  unsigned int level;
  struct upid numbers[];
};
typedef struct {
  int counter;
} atomic_t;
struct signal_struct {
  atomic_t live;
  unsigned int flags;
  int group_exit_code;
};
struct mm_struct {
  unsigned long arg_start;
  unsigned long arg_end;
};
struct kernfs_node {
  const char* name;
};
struct cgroup {
  struct kernfs_node* kn;
};
struct css_set {
  struct cgroup* dfl_cgrp;
};
typedef struct {
  u32 val;
} kuid_t;
struct cred {
  kuid_t uid;
};
struct inode {
  u32 i_rdev;
};
struct file {
  struct inode* f_inode;
};
struct vm_area_struct {
  unsigned long vm_start;
  unsigned long vm_end;
  struct file* vm_file;
};
enum fault_flag {
  FAULT_FLAG_WRITE = 1,
};
struct vm_fault {
  struct vm_area_struct* vma;
  unsigned long address;
  enum fault_flag flags;
};
struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};
struct files_struct {
  struct fdtable* fdt;
};
struct return_instance {
  unsigned long stack;
};
struct uprobe_task {
  struct return_instance* return_instances; /* innermost first */
};
struct task_struct {
  unsigned int flags;
  int pid;
  int tgid;
  int exit_code;
  char comm[16];
  u64 start_time;
  u64 start_boottime;
  struct task_struct* group_leader;
  struct task_struct* real_parent;
  struct pid* thread_pid;
  struct signal_struct* signal;
  struct mm_struct* mm;
  struct css_set* cgroups;
  const struct cred* real_cred;
  struct files_struct* files;
  unsigned long sas_ss_sp; /* from sigaltstack() */
  unsigned long sas_ss_size;
  struct uprobe_task* utask;
};

struct trace_event_raw_sys_enter {
  unsigned long args[6];
};
struct trace_event_raw_sys_exit {
  long ret;
};

#pragma clang attribute pop

#endif
