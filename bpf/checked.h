/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bounds that reach the verifier. If the compiler knows that a value is in range, it drops the
 * check; otherwise it may add first and compare afterwards, or compare a copy. The verifier then
 * refuses the access, and where that happens changes with the compiler's version. The compiler
 * knows nothing of a value that comes out of assembly, and has to use that one. Every index and
 * size that is not a constant goes through one of these macros. */
#ifndef CUDABPF_CHECKED_H
#define CUDABPF_CHECKED_H

#include "vmlinux.h"

/* Turns any value into an index of a table with `size` entries, a power of two. */
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
