/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bounds that reach the verifier. Where the compiler knows a value to be in range it drops the
 * check, and where it does not it may add first and compare after, or compare a copy: the verifier
 * then refuses the access, and which compiler does so where changes with its version. What comes
 * out of assembly is unknown to the compiler, and is what is then used. Every index and size that
 * is not a constant goes through one of these. */
#ifndef CUDABPF_CHECKED_H
#define CUDABPF_CHECKED_H

#include "vmlinux.h"

/* An index into a table of `size` entries, a power of two, from a value of any size. */
#define index_of(value, size)                                     \
  ({                                                              \
    _Static_assert(((size) & ((size)-1)) == 0, "a power of two"); \
    __u64 index__ = (value);                                      \
    asm("%0 &= %1" : "+r"(index__) : "i"((__s32)(size)-1));       \
    index__;                                                      \
  })

/* The value, but no more than `most`, a constant. */
#define at_most(value, most)                                                      \
  ({                                                                              \
    __u64 bounded__ = (value);                                                    \
    asm("if %0 <= %1 goto +1\n\t%0 = %1" : "+r"(bounded__) : "i"((__s32)(most))); \
    bounded__;                                                                    \
  })

#endif
