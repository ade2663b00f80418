/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the test of patched prologues, in C++, knows of the library inside, in C. */
#ifndef CUDABPF_TEST_INSIDE_PATCHING_H
#define CUDABPF_TEST_INSIDE_PATCHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a call has passed by. */
struct passing {
  bool return_wanted; /* by the test: what ci_enter() answers */
  unsigned above;     /* and how many words above the return address are handed on */
  unsigned entered, left;
  uint64_t sp, args[6], result;
};
extern struct passing passing;

/* Patches the code by ci_patch(), as if it were a library. `sites`: struct ci_site[]. */
void patch_code(void* code, size_t size, const void* sites, unsigned count,
                unsigned char* outcomes);

#ifdef __cplusplus
}
#endif
#endif
