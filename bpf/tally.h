/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls that are only counted, by process and function. They make no records. */
#ifndef CUDABPF_TALLY_H
#define CUDABPF_TALLY_H

#include "call.h"

/* A call is counted when it begins, so it counts exactly once, however it ends. Its entry stays
 * until userspace has read it for the last time and removes it, once the process is gone. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 1); /* userspace makes room */
  __type(key, struct cb_tally_key);
  __type(value, struct cb_tally);
} tallies SEC(".maps");

/* These have no room unless `times_wanted`. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __type(key, struct cb_tally_key);
  __type(value, struct cb_call_times);
} call_times SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __type(key, struct cb_tally_key);
  __type(value, __u64);
} failed_calls SEC(".maps");
const volatile bool times_wanted = false;

/* The calls under way where the kernel has no sessions, like pending_outs in reads.h. A function
 * that ends in a jump to another shares that one's key. An entry that longjmp leaves behind is used
 * again by the same function at the same place. */
struct counted_call {
  __u64 key; /* 0: free */
  __u64 function;
  __u64 began;
};
static struct counted_call counted_calls[OUT_SETS][OUT_WAYS];

/* Mapped by userspace: begun = ended + under way + dropped. */
__u64 tally_counters[CB_MAX_CPUS][CB_TALLY_COUNTERS] __attribute__((aligned(64)));

static __always_inline void count_tally(enum cb_tally_counter counter) {
  __u64 cpu = index_of(bpf_get_smp_processor_id(), CB_MAX_CPUS);
  __sync_fetch_and_add(&tally_counters[cpu][counter], 1);
}

static __always_inline struct counted_call* counted_set(__u64 key) {
  return counted_calls[index_of(key * CB_HASH_FACTOR >> 52, OUT_SETS)];
}

/* False: there is no room. Where all ways are taken, the oldest call's is: threads that were killed
 * within a call, and calls that longjmp left, never give theirs back. */
static __always_inline bool keep_counted(__u64 key, __u64 function) {
  struct counted_call* set = counted_set(key);
  struct counted_call* oldest = set;
  for (int way = 0; way < OUT_WAYS; way++) {
    struct counted_call* call = &set[way];
    __u64 owner = call->key;
    if ((owner == key && call->function == function) ||
        (!owner && !__sync_val_compare_and_swap(&call->key, 0, key))) {
      call->function = function;
      call->began = bpf_ktime_get_ns();
      return true;
    }
    if (call->began < oldest->began) oldest = call;
  }
  __u64 owner = oldest->key;
  if (__sync_val_compare_and_swap(&oldest->key, owner, key) != owner) return false;
  count_tally(CB_TALLY_UNTIMED); /* the one that had it */
  oldest->function = function;
  oldest->began = bpf_ktime_get_ns();
  return true;
}

/* When the call began; 0: that was not seen. */
static __always_inline __u64 let_go_counted(__u64 key, __u64 function) {
  struct counted_call* set = counted_set(key);
  for (int way = 0; way < OUT_WAYS; way++) {
    struct counted_call* call = &set[way];
    if (call->key != key || call->function != function) continue;
    __u64 began = call->began;
    call->key = 0;
    return began;
  }
  return 0;
}

/* Kernels that have sessions let a program follow pointers by itself, which takes no helper's call.
 */
static __always_inline struct cb_tally_key tally_key(struct ids ids, struct cb_plan plan,
                                                     bool session) {
  struct cb_tally_key key = {.pid = ids.pid, .what = plan.function};
  if (session) {
    key.began = bpf_get_current_task_btf()->group_leader->start_time;
  } else {
    struct task_struct* task = (struct task_struct*)bpf_get_current_task();
    key.began = BPF_CORE_READ(task, group_leader, start_time);
  }
  return key;
}

/* Null: there is no room. */
static __always_inline struct cb_tally* tally_of(const struct cb_tally_key* key) {
  struct cb_tally* tally = bpf_map_lookup_elem(&tallies, key);
  if (tally) return tally;
  struct cb_tally nothing = {};
  bpf_map_update_elem(&tallies, key, &nothing, BPF_NOEXIST); /* another thread may be first */
  return bpf_map_lookup_elem(&tallies, key);
}

/* What was not kept for want of room is missed in userspace, which knows how many calls ended and
 * how many failed. */
static __always_inline void add_time(struct cb_tally_key key, struct cb_plan plan, __u64 ns) {
  key.what = plan.call_class;
  struct cb_call_times* times = bpf_map_lookup_elem(&call_times, &key);
  if (!times) {
    struct cb_call_times nothing = {};
    bpf_map_update_elem(&call_times, &key, &nothing, BPF_NOEXIST);
    times = bpf_map_lookup_elem(&call_times, &key);
    if (!times) return;
  }
  __u64 above = 0;
#pragma unroll
  for (int limit = 0; limit < CB_TIME_LIMITS; limit++)
    above += ns > CB_FIRST_TIME_LIMIT_NS << (2 * limit);
  __sync_fetch_and_add(&times->time_ns, ns);
  __sync_fetch_and_add(&times->calls[at_most(above, CB_TIME_LIMITS)], 1);
}

static __always_inline void add_failed(struct cb_tally_key key, __s32 result) {
  bool known = result > 0 && result <= CB_MOST_RESULT;
  key.what = known ? (__u32)result : CB_OTHER_RESULT;
  __u64* calls = bpf_map_lookup_elem(&failed_calls, &key);
  if (!calls) {
    __u64 none = 0;
    bpf_map_update_elem(&failed_calls, &key, &none, BPF_NOEXIST);
    calls = bpf_map_lookup_elem(&failed_calls, &key);
    if (!calls) return;
  }
  __sync_fetch_and_add(calls, 1);
}

static __always_inline __u64 size_argument(struct pt_regs* ctx, struct cb_plan plan) {
  __u64 args[CB_PLAIN_ARGS] = {};
  read_plain_args(ctx, args, REGISTER_ARGS);
  __u64 size = args[at_most(plan.size_arg, CB_PLAIN_ARGS - 1)];
  if (plan.size_narrow) size = (__u32)size;
  return size > CB_MOST_COPIED ? 0 : size;
}

/* Whether the call is recorded instead: once a process captures, the launches of its graphs say
 * what ran, and by its events streams join captures. */
static __always_inline bool is_recorded(struct ids ids, struct cb_plan plan) {
  return plan.until_capture && *capture_mark(ids.pid);
}

/* What the return finds: in a session no time, else an entry that is not that of a counted call. */
static __always_inline __u64 as_recorded(struct cb_plan plan) { return plan.function | 1ULL << 32; }

/* As call.h records calls, by the arguments in registers. Returns whether its return is wanted. */
static __always_inline bool recorded_entry(struct pt_regs* ctx, struct ids ids, struct cb_plan plan,
                                           __u64* cookie) {
  bool unseen = false;
  if (cookie) {
    *cookie = 0;
    unseen = return_would_kill(ctx);
  } else {
    unseen = !keep_counted(call_key(ids.tid, (__u32)PT_REGS_SP(ctx)), as_recorded(plan));
  }
  emit_plain_entry(ctx, ids, plan, at_most(plan.nargs, REGISTER_ARGS), unseen);
  return !unseen;
}

static __always_inline bool entry_was_recorded(struct pt_regs* ctx, struct ids ids,
                                               struct cb_plan plan, const __u64* cookie) {
  if (!plan.until_capture) return false;
  if (cookie) return !*cookie;
  return let_go_counted(call_key(ids.tid, (__u32)(PT_REGS_SP(ctx) - RETURN_POPS)),
                        as_recorded(plan));
}

/* `cookie`: where a session keeps when the call began; null: there are no sessions. Returns whether
 * the call's return is wanted. A program may be preempted, so even a CPU's own numbers are added to
 * atomically.
 */
static __always_inline bool counted_entry(struct pt_regs* ctx, __u64* cookie) {
  struct ids ids = current_ids();
  if (!selected(ids)) return false;
  struct cb_plan plan = plan_of(ctx);
  if (is_recorded(ids, plan)) return recorded_entry(ctx, ids, plan, cookie);
  struct cb_tally_key key = tally_key(ids, plan, cookie);
  count_tally(CB_TALLY_BEGUN);
  struct cb_tally* tally = tally_of(&key);
  if (!tally) {
    count_tally(CB_TALLY_DROPPED);
    return false;
  }
  __sync_fetch_and_add(&tally->calls, 1);
  if (plan.size_arg != CB_NO_ARG) __sync_fetch_and_add(&tally->bytes, size_argument(ctx, plan));
  if (cookie && !return_would_kill(ctx)) {
    *cookie = bpf_ktime_get_ns();
    return true;
  }
  if (!cookie && keep_counted(call_key(ids.tid, (__u32)PT_REGS_SP(ctx)), plan.function))
    return true;
  count_tally(CB_TALLY_UNTIMED);
  return false;
}

static __always_inline int counted_return(struct pt_regs* ctx, const __u64* cookie) {
  __u64 now = bpf_ktime_get_ns();
  struct ids ids = current_ids();
  if (!cookie && !is_traced(ids.pid)) return 0; /* a session's entry wanted it */
  struct cb_plan plan = plan_of(ctx);
  if (entry_was_recorded(ctx, ids, plan, cookie)) return plain_return(ctx);
  __u64 began = cookie ? *cookie
                       : let_go_counted(call_key(ids.tid, (__u32)(PT_REGS_SP(ctx) - RETURN_POPS)),
                                        plan.function);
  struct cb_tally_key key = tally_key(ids, plan, cookie);
  /* A child that was forked in the middle of a call returns from it, too. */
  if (!began || began < key.began) return 0;
  struct cb_tally* tally = bpf_map_lookup_elem(&tallies, &key);
  if (!tally) return 0;
  __s32 result = (__s32)PT_REGS_RC(ctx);
  __sync_fetch_and_add(&tally->ended, 1);
  __sync_fetch_and_add(&tally->time_ns, now - began);
  if (times_wanted) add_time(key, plan, now - began);
  if (result && result != CB_NOT_READY) {
    if (times_wanted) add_failed(key, result);
    tally->failed_at = now;
    tally->error = (__u32)result;
    __sync_fetch_and_add(&tally->failed, 1);
  }
  return 0;
}

#endif
