/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* From where an allocation was asked for, as the kernel side sees it. Whose code that was is found
 * out by the source of its records, which makes CB_HOLDER of it. */
#ifndef CUDABPF_CALLER_H
#define CUDABPF_CALLER_H

#include "cudabpf/abi.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

#define CB_CALLER_STACK 1024
#define CB_CALLER_PART 256 /* the stack is read in parts, since it may end */

/* The caller of the call that has just begun with the head's stack pointer. */
struct cb_caller {
  struct cb_head head;
  __u64 ip, sp, bp; /* as they are once the call has returned */
  __u64 size;       /* of the stack from `sp` on that could be read, in whole parts */
  __u8 stack[CB_CALLER_STACK];
};
CB_STATIC_ASSERT(sizeof(struct cb_caller) == 1088, "cb_caller");

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
