/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is in the buffers that CUPTI fills. */
#ifndef CUDABPF_INSIDE_GPU_OPERATIONS_H
#define CUDABPF_INSIDE_GPU_OPERATIONS_H

#include "gpu_buffers.h"

HIDDEN void ci_fill_gpu_head(struct cb_head* head, struct ci_thread* thread, __u8 kind);
/* Records these operations in this thread's ring. May wait for cudabpf to read. */
HIDDEN void ci_report_gpu_operations(const struct ci_gpu_buffer* buffer);
/* Records that a window opens or closes now. */
HIDDEN void ci_report_gpu_window(const struct cb_gpu_window* window);

#endif
