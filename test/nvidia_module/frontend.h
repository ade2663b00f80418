/* SPDX-License-Identifier: GPL-2.0 */
/* Up to 535, nvidia.ko has a front end that owns all of major 195: a module registers its functions
 * there, and gets the calls for its devices. */
#ifndef NVIDIA_STAND_IN_FRONTEND_H
#define NVIDIA_STAND_IN_FRONTEND_H

#include <linux/fs.h>
#include <linux/poll.h>

struct nvidia_module {
  struct module* owner;
  int instance; /* 0: nvidia; 1: nvidia-modeset, which has the minor before nvidiactl's */
  int (*open)(struct inode* inode, struct file* file);
  int (*close)(struct inode* inode, struct file* file);
  int (*mmap)(struct file* file, struct vm_area_struct* area);
  int (*ioctl)(struct inode* inode, struct file* file, unsigned int cmd, unsigned long arg);
  unsigned int (*poll)(struct file* file, poll_table* wait);
};

int nvidia_register_module(struct nvidia_module* module);
void nvidia_unregister_module(struct nvidia_module* module);

#endif
