/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls as patched functions make them, and the process that makes them, for tests in C++. */
#ifndef CUDABPF_TEST_INSIDE_CALLING_H
#define CUDABPF_TEST_INSIDE_CALLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A thread's, in bytes: a power of two, and small enough to be filled soon. */
#define CALLING_RING_SIZE (1ul << 20)

/* From here on the process is traced, into this shared memory. */
void calling_into(void* shared);
/* As if cudabpf had not read for this much longer. */
void calling_unread_for(unsigned seconds);
/* What a child finds: it does not know yet whether it is traced. */
void calling_as_a_child(void);

/* What ci_call does with a call. `plan`: struct cb_plan; `reads`: struct cb_read[CB_MAX_READS], or
 * null. False: its return is not wanted. */
#define CALLING_WORDS 24
bool calling(const void* plan, const void* reads, bool launch,
             const uint64_t arguments[CALLING_WORDS], int32_t result);

/* The same of a function that is given a handle of cuBLAS, which these are asked about:
 * int (*)(uint64_t handle, uint64_t* stream), int (*)(uint64_t handle, uint32_t* math). */
bool calling_with_handle(const void* plan, uint64_t handle, const void* stream_of,
                         const void* math_of);

/* Puts the library between the library at this address and the functions that it imports. */
void calling_watches_imports(const void* address);

#ifdef __cplusplus
/* Functions of the library itself: inside.h, which C++ cannot read. */
bool ci_read(void* to, uint64_t from, uint64_t size, uint64_t sp);
uint32_t ci_read_string(char* to, uint64_t from, uint32_t size);
uint64_t ci_find_gap(uint64_t from, uint64_t to, uint64_t size);
int InitializeInjection(void);
}
#endif
#endif
