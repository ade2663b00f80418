// SPDX-License-Identifier: GPL-2.0
/* A stand-in for nvidia-modeset.ko; see nvidia_devices.c. */
#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "frontend.h"
#include "rules.h"

/* The only ioctl: its struct says what is wanted. */
#define IOCTL_NUMBER 0
struct request {
  u32 command;
  u32 size;
  u64 address;
};

static noinline int nvkms_open(struct inode* inode, struct file* file) {
  stand_in_count(NODE_MODESET, OP_OPEN, 0, 0);
  return 0;
}

static noinline int nvkms_close(struct inode* inode, struct file* file) {
  stand_in_count(NODE_MODESET, OP_CLOSE, 0, 0);
  return 0;
}

static noinline int nvkms_mmap(struct file* file, struct vm_area_struct* area) {
  stand_in_count(NODE_MODESET, OP_MMAP, 0, 0);
  return -EPERM;
}

static noinline unsigned int nvkms_poll(struct file* file, poll_table* wait) {
  stand_in_count(NODE_MODESET, OP_POLL, 0, 0);
  return 0;
}

static int nvkms_ioctl(struct inode* inode, struct file* file, unsigned int cmd,
                       unsigned long arg) {
  struct request request;

  stand_in_count(NODE_MODESET, OP_IOCTL, _IOC_NR(cmd), 0);
  if (_IOC_NR(cmd) != IOCTL_NUMBER || _IOC_SIZE(cmd) != sizeof(request)) return -ENOTTY;
  if (copy_from_user(&request, (void __user*)arg, sizeof(request))) return -EFAULT;
  return stand_in_reply(NODE_MODESET, IOCTL_NUMBER, 0).result;
}

#ifdef FRONTEND
static struct nvidia_module modeset = {THIS_MODULE, 1,           nvkms_open, nvkms_close,
                                       nvkms_mmap,  nvkms_ioctl, nvkms_poll};

static int __init start(void) { return nvidia_register_module(&modeset); }

static void __exit stop(void) { nvidia_unregister_module(&modeset); }
#else
static noinline long nvkms_unlocked_ioctl(struct file* file, unsigned int cmd, unsigned long arg) {
  return nvkms_ioctl(file_inode(file), file, cmd, arg);
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = nvkms_open,
    .release = nvkms_close,
    .poll = (void*)nvkms_poll,
    .mmap = nvkms_mmap,
    .unlocked_ioctl = nvkms_unlocked_ioctl,
    .compat_ioctl = nvkms_unlocked_ioctl,
};

static const dev_t number = MKDEV(MAJOR_NUMBER, NODE_MODESET);
static struct cdev device;

static int __init start(void) {
  int bad = register_chrdev_region(number, 1, "nvidia-modeset");

  if (bad) return bad;
  cdev_init(&device, &operations);
  bad = cdev_add(&device, number, 1);
  if (bad) unregister_chrdev_region(number, 1);
  return bad;
}

static void __exit stop(void) {
  cdev_del(&device);
  unregister_chrdev_region(number, 1);
}
#endif

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A stand-in for NVIDIA's mode-setting driver, for cudabpf's tests");
MODULE_VERSION("580.159.04");
