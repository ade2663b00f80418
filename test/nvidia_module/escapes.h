/* SPDX-License-Identifier: GPL-2.0 */
/* The ioctls of nvidiactl and nvidiaN, the "escapes", as 580.159.04 has them. */
#ifndef NVIDIA_STAND_IN_ESCAPES_H
#define NVIDIA_STAND_IN_ESCAPES_H

#include <linux/types.h>

#define ESC_XFER_CMD 0xd3
#define ESC_ALLOC_OS_EVENT 0xce
#define ESC_MAX_SIZE 16384

struct xfer { /* NV_ESC_IOCTL_XFER_CMD: an ioctl whose struct is elsewhere */
  u32 number;
  u32 size;
  u64 address;
};

/* Checks the framing: 0, or -EINVAL if the struct has another size or the device is wrong. */
int escape_check(int node, u32 number, u32 size);

/* The control or class that an ioctl is about; 0 if it has none. */
u32 escape_subject(u32 number, const void* structure, u32 size);

/* Writes what the driver would have written, the status last. */
int escape_answer(u32 number, void* structure, u32 size, u32 status);

#endif
