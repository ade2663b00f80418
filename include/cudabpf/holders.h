/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whose code asks the driver for memory: that of the first file, from the call outwards, that does
 * not only pass on what it was asked for. The library inside a process and cudabpf share this. */
#ifndef CUDABPF_HOLDERS_H
#define CUDABPF_HOLDERS_H

#include "cudabpf/unwind.h"

#ifdef __cplusplus
namespace cudabpf::unwind {
#endif

#define CU_MOST_FRAMES 32

/* The name of a path's last part. */
static inline const char* cu_file_of(const char* path) {
  const char* file = path;
  for (const char* at = path; *at; at++)
    if (*at == '/') file = at + 1;
  return file;
}

/* True for CUDA's runtime, where it is a library of its own, for the driver, whose functions call
 * each other, and for the library inside a process, which calls what it has patched. */
static inline bool cu_passes_on(const char* file) {
  static const char* const NAMES[] = {"libcudart.so", "libcuda.so", "libcudabpf-inside.so"};
  for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
    unsigned length = 0;
    while (NAMES[i][length] && NAMES[i][length] == file[length]) length++;
    if (!NAMES[i][length] && (!file[length] || file[length] == '.')) return true;
  }
  return false;
}

#ifdef __cplusplus
}  // namespace cudabpf::unwind
#endif
#endif
