/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Starts, forks, execs and exits of traced processes. */
#ifndef CUDABPF_PROCESS_H
#define CUDABPF_PROCESS_H

#include "emit.h"
#include "operations.h"

static __always_inline __u32 innermost_pid(struct task_struct* task) {
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  __u32 level = BPF_CORE_READ(pid, level);
  struct upid number = {};
  bpf_core_read(&number, sizeof(number), &pid->numbers[level]);
  return number.nr;
}

/* `task` is the current one, except at a fork, where we cannot read the child's address space. */
static __noinline int send_process(struct task_struct* task, __u32 pid, __u32 tid, __u32 kind) {
  struct cb_process* record = reserve(sizeof(*record), tid, CB_DROPPED_PROCESS);
  if (!record) return 0;
  __builtin_memset(record, 0, sizeof(*record));
  struct ids ids = {pid, tid};
  fill_head(&record->head, ids, kind);
  record->head.ts = bpf_ktime_get_ns();
  record->ppid = pid_here(BPF_CORE_READ(task, real_parent, group_leader));
  record->uid = BPF_CORE_READ(task, real_cred, uid.val);
  record->start_time = BPF_CORE_READ(task, group_leader, start_boottime);
  record->cgroup_id = bpf_get_current_cgroup_id();
  record->ns_pid = innermost_pid(BPF_CORE_READ(task, group_leader));
  BPF_CORE_READ_STR_INTO(&record->comm, task, group_leader, comm);
  bpf_probe_read_kernel_str(record->cgroup_name, sizeof(record->cgroup_name),
                            BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, name));
  if (kind == CB_EXIT) {
    struct signal_struct* signal = BPF_CORE_READ(task, signal);
    __s32 group_code = BPF_CORE_READ(signal, group_exit_code);
    record->head.result = group_code ? group_code : BPF_CORE_READ(task, exit_code);
  }
  if (kind == CB_START || kind == CB_EXEC) {
    unsigned long start = BPF_CORE_READ(task, mm, arg_start);
    __u64 size = at_most(BPF_CORE_READ(task, mm, arg_end) - start, CB_CMDLINE);
    if (size && !bpf_probe_read_user(record->cmdline, size, (void*)start))
      record->cmdline_size = size;
  }
  submit(record);
  return 0;
}

/* The first CUDA call of a process that was not listed. */
static __always_inline void adopt_current(struct ids ids) {
  set_traced(ids.pid);
  send_process((struct task_struct*)bpf_get_current_task(), ids.pid, ids.tid, CB_START);
}

static __always_inline int on_fork(struct task_struct* parent, struct task_struct* child) {
  __u32 parent_pid = pid_here(BPF_CORE_READ(parent, group_leader));
  if (!is_traced(parent_pid)) return 0;
  if (!follow_children) return 0; /* its end would not be recorded either */
  if (BPF_CORE_READ(child, group_leader) != child) return 0; /* a thread */
  __u32 pid = pid_here(child);
  set_traced(pid);
  send_process(child, pid, pid, CB_FORK);
  return 0;
}

static __always_inline int on_exec(struct task_struct* task) {
  struct ids ids = current_ids();
  if (is_traced(ids.pid)) send_process(task, ids.pid, ids.tid, CB_EXEC);
  return 0;
}

static __always_inline int on_exit(struct task_struct* task) {
  struct ids ids = current_ids();
  if (driver_traced) forget_operations();
  if (!is_traced(ids.pid)) return 0;
  if (BPF_CORE_READ(task, signal, live.counter) == 0) {
    send_process(task, ids.pid, ids.tid, CB_EXIT);
    clear_traced(ids.pid);
    return 0;
  }
  struct cb_head head;
  __builtin_memset(&head, 0, sizeof(head));
  fill_head(&head, ids, CB_THREAD_EXIT);
  head.ts = bpf_ktime_get_ns();
  emit(&head, sizeof(head), ids.tid, CB_DROPPED_PROCESS);
  return 0;
}

#endif
