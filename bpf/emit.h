/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every program shares: the ring, the counters, and the set of traced processes. */
#ifndef CUDABPF_EMIT_H
#define CUDABPF_EMIT_H

#include "vmlinux.h"
/* These must follow vmlinux.h, which stands in for the kernel's headers. */
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "checked.h"
#include "cudabpf/abi.h"
#include "cudabpf/caller.h"

/* Configuration; userspace sets it between open and load. */
const volatile bool follow_children = true;
const volatile bool driver_traced;
/* cudabpf itself, which queries the driver for how busy the GPUs are. */
const volatile __u32 own_pid = 0;
/* The call programs are loaded sleepable, so they can fault in memory that is not resident. */
const volatile bool can_sleep = false;
/* cudabpf's own pid namespace if that is not the initial one; pids in records are its pids. */
const volatile __u64 pidns_dev = 0;
const volatile __u64 pidns_ino = 0;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 32 << 20); /* --ring-size sets it */
} ring SEC(".maps");

/* Userspace reads and writes these through the mapped .bss. */
__u32 selection;       /* enum cb_selection; set once every probe is in place */
__u64 selected_cgroup; /* its id, for CB_SELECT_CGROUP */
__u32 selected_cgroup_level;
__u64 counters[CB_MAX_CPUS][CB_KERNEL_COUNTERS] __attribute__((aligned(64)));
__u64 traced[CB_PID_LIMIT / 64];      /* one bit per process */
__u64 once_traced[CB_PID_LIMIT / 64]; /* the same, but never cleared */
__u32 drops[CB_DROP_SLOTS];

struct ids {
  __u32 pid;
  __u32 tid;
};

static __always_inline void count(enum cb_counter counter) {
  __u64 cpu = index_of(bpf_get_smp_processor_id(), CB_MAX_CPUS);
  __sync_fetch_and_add(&counters[cpu][counter], 1);
}

static __always_inline __u64* word_of(__u64* bits, __u32 pid) {
  return &bits[index_of(pid / 64, CB_PID_LIMIT / 64)];
}

static __always_inline bool is_traced(__u32 pid) {
  return pid < CB_PID_LIMIT && (*word_of(traced, pid) >> (pid % 64) & 1);
}

static __always_inline void set_traced(__u32 pid) {
  if (pid >= CB_PID_LIMIT) return;
  __sync_fetch_and_or(word_of(traced, pid), 1ULL << (pid % 64));
  __sync_fetch_and_or(word_of(once_traced, pid), 1ULL << (pid % 64));
}

static __always_inline void clear_traced(__u32 pid) {
  if (pid < CB_PID_LIMIT) __sync_fetch_and_and(word_of(traced, pid), ~(1ULL << (pid % 64)));
}

/* Whether an untraced process, if it is selected, is traced from its first call or request on. */
static __always_inline bool may_be_adopted(__u32 pid) {
  return selection != CB_SELECT_LISTED && pid && pid != own_pid;
}

#define PID_NAMESPACE_DEPTH 8 /* the kernel allows 32; container runtimes nest two or three */

/* The task's pid in cudabpf's own pid namespace; 0 if it has none there. */
static __noinline __u32 pid_here(struct task_struct* task) {
  if (!pidns_ino) return BPF_CORE_READ(task, pid);
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  __u32 level = BPF_CORE_READ(pid, level);
  for (__u32 i = 0; i < PID_NAMESPACE_DEPTH && i <= level; i++) {
    /* clang 19 would count down from the smaller of both bounds, a number that the verifier does
     * not know. */
    asm volatile("" : "+r"(i));
    struct upid number = {};
    bpf_core_read(&number, sizeof(number), &pid->numbers[i]);
    if (BPF_CORE_READ(number.ns, ns.inum) == pidns_ino) return number.nr;
  }
  return 0;
}

static __always_inline struct ids current_ids(void) {
  struct ids ids;
  if (pidns_ino) {
    struct bpf_pidns_info info = {};
    if (!bpf_get_ns_current_pid_tgid(pidns_dev, pidns_ino, &info, sizeof(info))) {
      ids.pid = info.tgid;
      ids.tid = info.pid;
    } else {
      /* The process is in a namespace nested in ours, or outside ours: then it has no pid here,
       * gets 0, and is not traced. */
      struct task_struct* task = (struct task_struct*)bpf_get_current_task();
      ids.pid = pid_here(BPF_CORE_READ(task, group_leader));
      ids.tid = pid_here(task);
    }
    return ids;
  }
  __u64 both = bpf_get_current_pid_tgid();
  ids.pid = both >> 32;
  ids.tid = (__u32)both;
  return ids;
}

static __always_inline __u32* drop_slot(__u32 tid) { return &drops[index_of(tid, CB_DROP_SLOTS)]; }

static __always_inline void fill_head(struct cb_head* head, struct ids ids, __u8 kind) {
  head->pid = ids.pid;
  head->tid = ids.tid;
  head->kind = kind;
  head->drops = *drop_slot(ids.tid);
}

static __always_inline void dropped(__u32 tid, enum cb_counter reason) {
  __sync_fetch_and_add(drop_slot(tid), 1);
  count(reason);
}

/* Counts a record as entered, hands it to the ring, and counts the outcome. No reader is woken: it
 * polls, so that a traced thread never pays for a wake-up. */
static __always_inline bool emit(void* record, __u64 size, __u32 tid, enum cb_counter reason) {
  count(CB_ENTERED);
  if (bpf_ringbuf_output(&ring, record, size, BPF_RB_NO_WAKEUP)) {
    dropped(tid, reason);
    return false;
  }
  count(CB_EMITTED);
  return true;
}

/* The same for a record that is too large for the stack, or is read into the ring: between the two,
 * nothing may sleep. `size` is a constant. Null: the record is counted as dropped. */
static __always_inline void* reserve(__u64 size, __u32 tid, enum cb_counter reason) {
  count(CB_ENTERED);
  void* record = bpf_ringbuf_reserve(&ring, size, 0);
  if (!record) dropped(tid, reason);
  return record;
}

static __always_inline void submit(void* record) {
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  count(CB_EMITTED);
}

#endif
