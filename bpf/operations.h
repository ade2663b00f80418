/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations of the NVIDIA driver that are under way: what their end needs to know. */
#ifndef CUDABPF_OPERATIONS_H
#define CUDABPF_OPERATIONS_H

#include "emit.h"

/* A thread has one at a time, and may fault inside it. */
#define OPERATION_SETS 2048
#define OPERATION_WAYS 4
struct operation {
  __u32 owner; /* owner_of() it; 0: free */
  __u8 op;     /* enum cb_driver_op */
  __u8 recorded;
  __u16 status_at;
  __u64 argument;
  __u64 ts;
  __u32 size;
};
static struct operation operations[OPERATION_SETS][OPERATION_WAYS];

/* Who is in such an operation: this thread, by its id in all of the machine, which has 22 bits.
 * Idle threads, which interrupts may find, all are thread 0. */
static __always_inline __u32 owner_of(__u32 op) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  if (op < CB_FAULT) return tid;
  return (tid ? tid : bpf_get_smp_processor_id() | 1 << 22) | op << 24;
}

static __always_inline struct operation* operation_set(__u32 owner) {
  return operations[index_of(owner * 0x9e3779b1u >> 21, OPERATION_SETS)];
}

static __always_inline struct operation* claim_operation(__u32 owner) {
  struct operation* set = operation_set(owner);
  for (int way = 0; way < OPERATION_WAYS; way++)
    if (set[way].owner == owner ||
        (!set[way].owner && !__sync_val_compare_and_swap(&set[way].owner, 0, owner)))
      return &set[way];
  return 0;
}

static __always_inline struct operation* operation_of(__u32 owner) {
  struct operation* set = operation_set(owner);
  for (int way = 0; way < OPERATION_WAYS; way++)
    if (set[way].owner == owner) return &set[way];
  return 0;
}

static __always_inline void forget_operation(__u32 owner) {
  struct operation* operation = operation_of(owner);
  if (operation) operation->owner = 0;
}

/* A thread that has ended leaves nothing behind, if it was killed inside the driver. */
static __always_inline void forget_operations(void) {
  forget_operation(owner_of(CB_FAULT));
  forget_operation(owner_of(CB_IOCTL)); /* and every other */
}

#endif
