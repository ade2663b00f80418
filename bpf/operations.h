/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* NVIDIA driver operations in progress: what must be known when they end. */
#ifndef CUDABPF_OPERATIONS_H
#define CUDABPF_OPERATIONS_H

#include "emit.h"

/* A thread has one at a time, and possibly a fault inside it. */
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

/* The thread in the operation: its id in the initial namespace, which has 22 bits. Idle threads,
 * which interrupts may hit, all have id 0, so the CPU stands in for it. */
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

/* A thread that is killed inside the driver must not leave its operations behind. */
static __always_inline void forget_operations(void) {
  forget_operation(owner_of(CB_FAULT));
  forget_operation(owner_of(CB_IOCTL)); /* every other operation has the same key */
}

#endif
