/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The least that tracing a call can cost: an empty program at its entry and one at its return, or
 * one for both. */
#include "vmlinux.h"
/* after vmlinux.h, which stands in for the kernel's headers */
#include <bpf/bpf_helpers.h>

SEC("?uprobe") int floor_entry(void* ctx) { return 0; }
SEC("?uretprobe") int floor_return(void* ctx) { return 0; }
SEC("?uprobe") int floor_session(void* ctx) { return 0; }

char LICENSE[] SEC("license") = "Dual BSD/GPL";
