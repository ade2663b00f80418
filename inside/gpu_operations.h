/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is in the buffers that CUPTI fills. */
#ifndef CUDABPF_INSIDE_GPU_WORKS_H
#define CUDABPF_INSIDE_GPU_WORKS_H

#include "gpu_buffers.h"

HIDDEN void ci_fill_gpu_head(struct cb_head* head, struct ci_thread* thread, __u8 kind);
/* Makes records of it in the ring of this thread, which may wait for cudabpf to read. */
HIDDEN void ci_report_gpu_operations(const struct ci_gpu_buffer* buffer);

#endif
