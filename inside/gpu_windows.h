/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When GPU times are recorded, if not always. */
#ifndef CUDABPF_INSIDE_GPU_WINDOWS_H
#define CUDABPF_INSIDE_GPU_WINDOWS_H

#include "inside.h"

HIDDEN bool ci_gpu_window_is_open(const struct ci_gpu_wish* wish, __u64 now);
/* How long it is until that changes, but no more than `most`. */
HIDDEN __u64 ci_before_gpu_window(const struct ci_gpu_wish* wish, __u64 now, __u64 most);

#endif
