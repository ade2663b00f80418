// SPDX-License-Identifier: GPL-2.0
/* A stand-in for nvidia.ko, for tests without a GPU: the devices, the functions that a tracer can
 * attach to, by their names and signatures, and ioctls that are counted and answered as told.
 *
 * Up to 535 the devices belong to a "frontend", whose functions call the module's own. Built with
 * FRONTEND defined this is such a driver.
 */
#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "escapes.h"
#include "rules.h"

#define MAJOR_NUMBER 195

struct opened {
  int node;
  wait_queue_head_t waiting;
  bool event; /* an event was asked for, and has come */
};

static int node_of(const struct file* file) {
  return ((const struct opened*)file->private_data)->node;
}

static int do_open(struct file* file, int node) {
  struct opened* opened = kzalloc(sizeof(*opened), GFP_KERNEL);

  if (!opened) return -ENOMEM;
  opened->node = node;
  init_waitqueue_head(&opened->waiting);
  file->private_data = opened;
  stand_in_count(node, OP_OPEN, 0, 0);
  return 0;
}

static noinline int nvidia_open(struct inode* inode, struct file* file) {
  return do_open(file, iminor(inode));
}

static noinline int nvidia_close(struct inode* inode, struct file* file) {
  stand_in_count(node_of(file), OP_CLOSE, 0, 0);
  kfree(file->private_data);
  return 0;
}

static noinline unsigned int nvidia_poll(struct file* file, poll_table* wait) {
  struct opened* opened = file->private_data;

  stand_in_count(opened->node, OP_POLL, 0, 0);
  poll_wait(file, &opened->waiting, wait);
  return READ_ONCE(opened->event) ? POLLIN | POLLPRI : 0;
}

static vm_fault_t nvidia_fault(struct vm_fault* fault) {
  fault->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
  return fault->page ? 0 : VM_FAULT_OOM;
}

static const struct vm_operations_struct mapping = {.fault = nvidia_fault};

int nvidia_mmap(struct file* file, struct vm_area_struct* area);
noinline int nvidia_mmap(struct file* file, struct vm_area_struct* area) {
  stand_in_count(node_of(file), OP_MMAP, 0, 0);
  area->vm_ops = &mapping;
  return 0;
}

/* The struct is copied in whole, answered, and copied back, also where the status tells a failure.
 */
static long answer(struct file* file, u32 number, void __user* address, u32 size) {
  struct opened* opened = file->private_data;
  struct reply reply = {0, 0};
  void* structure = NULL;
  u32 subject = 0;
  long result = -EINVAL;

  if (size > ESC_MAX_SIZE) goto count;
  structure = kzalloc(max(size, 1u), GFP_KERNEL);
  if (!structure) return -ENOMEM;
  result = -EFAULT;
  if (copy_from_user(structure, address, size)) goto count;
  subject = escape_subject(number, structure, size);
  result = escape_check(opened->node, number, size);
count:
  stand_in_count(opened->node, OP_IOCTL, number, subject);
  if (result) goto out;
  reply = stand_in_reply(opened->node, number, subject);
  result = reply.result;
  if (result) goto out;
  result = escape_answer(number, structure, size, reply.status);
  if (!result && copy_to_user(address, structure, size)) result = -EFAULT;
  if (!result && number == ESC_ALLOC_OS_EVENT && !reply.status) {
    WRITE_ONCE(opened->event, true);
    wake_up_interruptible(&opened->waiting);
  }
out:
  kfree(structure);
  return result;
}

static __always_inline long do_ioctl(struct file* file, unsigned int cmd, unsigned long arg) {
  void __user* address = (void __user*)arg;
  u32 number = _IOC_NR(cmd), size = _IOC_SIZE(cmd);
  struct xfer xfer;

  if (number == ESC_XFER_CMD) {
    if (size != sizeof(xfer) || copy_from_user(&xfer, address, sizeof(xfer))) {
      stand_in_count(node_of(file), OP_IOCTL, number, 0);
      return size != sizeof(xfer) ? -EINVAL : -EFAULT;
    }
    number = xfer.number;
    size = xfer.size;
    address = (void __user*)xfer.address;
  }
  return answer(file, number, address, size);
}

#ifdef FRONTEND
static noinline int nvidia_ioctl(struct inode* inode, struct file* file, unsigned int cmd,
                                 unsigned long arg) {
  return do_ioctl(file, cmd, arg);
}

/* What a module gives to the frontend: the calls go through it, so that all these functions stay.
 */
struct nvidia_module {
  int (*open)(struct inode* inode, struct file* file);
  int (*close)(struct inode* inode, struct file* file);
  int (*mmap)(struct file* file, struct vm_area_struct* area);
  int (*ioctl)(struct inode* inode, struct file* file, unsigned int cmd, unsigned long arg);
  unsigned int (*poll)(struct file* file, poll_table* wait);
};
static struct nvidia_module registered = {nvidia_open, nvidia_close, nvidia_mmap, nvidia_ioctl,
                                          nvidia_poll};
static struct nvidia_module* volatile driver = &registered;

int nvidia_frontend_open(struct inode* inode, struct file* file);
noinline int nvidia_frontend_open(struct inode* inode, struct file* file) {
  return driver->open(inode, file);
}

int nvidia_frontend_close(struct inode* inode, struct file* file);
noinline int nvidia_frontend_close(struct inode* inode, struct file* file) {
  return driver->close(inode, file);
}

unsigned int nvidia_frontend_poll(struct file* file, poll_table* wait);
noinline unsigned int nvidia_frontend_poll(struct file* file, poll_table* wait) {
  return driver->poll(file, wait);
}

int nvidia_frontend_mmap(struct file* file, struct vm_area_struct* area);
noinline int nvidia_frontend_mmap(struct file* file, struct vm_area_struct* area) {
  return driver->mmap(file, area);
}

int nvidia_frontend_ioctl(struct inode* inode, struct file* file, unsigned int cmd,
                          unsigned long arg);
noinline int nvidia_frontend_ioctl(struct inode* inode, struct file* file, unsigned int cmd,
                                   unsigned long arg) {
  return driver->ioctl(inode, file, cmd, arg);
}

long nvidia_frontend_unlocked_ioctl(struct file* file, unsigned int cmd, unsigned long arg);
noinline long nvidia_frontend_unlocked_ioctl(struct file* file, unsigned int cmd,
                                             unsigned long arg) {
  return nvidia_frontend_ioctl(file_inode(file), file, cmd, arg);
}

#define ENTRY(name) nvidia_frontend_##name
#else
static noinline long nvidia_unlocked_ioctl(struct file* file, unsigned int cmd, unsigned long arg) {
  return do_ioctl(file, cmd, arg);
}

#define ENTRY(name) nvidia_##name
#endif

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = ENTRY(open),
    .release = ENTRY(close),
    .poll = (void*)ENTRY(poll), /* declared with unsigned int, as the real one's */
    .mmap = ENTRY(mmap),
    .unlocked_ioctl = ENTRY(unlocked_ioctl),
    .compat_ioctl = ENTRY(unlocked_ioctl),
};

static noinline int nvkms_open(struct inode* inode, struct file* file) {
  return do_open(file, NODE_MODESET);
}

static noinline int nvkms_close(struct inode* inode, struct file* file) {
  return nvidia_close(inode, file);
}

static noinline long nvkms_unlocked_ioctl(struct file* file, unsigned int cmd, unsigned long arg) {
  stand_in_count(NODE_MODESET, OP_IOCTL, _IOC_NR(cmd), 0);
  return stand_in_reply(NODE_MODESET, _IOC_NR(cmd), 0).result;
}

static const struct file_operations modeset_operations = {
    .owner = THIS_MODULE,
    .open = nvkms_open,
    .release = nvkms_close,
    .unlocked_ioctl = nvkms_unlocked_ioctl,
    .compat_ioctl = nvkms_unlocked_ioctl,
};

/* What /proc/devices says of them. */
static struct region {
  int first, count;
  const char* name;
  const struct file_operations* operations;
  struct cdev device;
} regions[] = {
#ifdef FRONTEND
    {0, NODE_MODESET, "nvidia-frontend", &operations},
    {NODE_CTL, 1, "nvidia-frontend", &operations},
#else
    {0, NODE_LAST_GPU + 1, "nvidia", &operations},
    {NODE_CTL, 1, "nvidiactl", &operations},
#endif
    {NODE_MODESET, 1, "nvidia-modeset", &modeset_operations},
};

static void remove_regions(int count) {
  while (count-- > 0) {
    cdev_del(&regions[count].device);
    unregister_chrdev_region(MKDEV(MAJOR_NUMBER, regions[count].first), regions[count].count);
  }
}

static int add_region(struct region* region) {
  dev_t first = MKDEV(MAJOR_NUMBER, region->first);
  int bad = register_chrdev_region(first, region->count, region->name);

  if (bad) return bad;
  cdev_init(&region->device, region->operations);
  region->device.owner = THIS_MODULE;
  bad = cdev_add(&region->device, first, region->count);
  if (bad) unregister_chrdev_region(first, region->count);
  return bad;
}

static int __init start(void) {
  int bad = 0, i;

  for (i = 0; i < ARRAY_SIZE(regions); ++i) {
    bad = add_region(&regions[i]);
    if (bad) break;
  }
  if (!bad) bad = stand_in_information_start();
  if (bad) remove_regions(i);
  return bad;
}

static void __exit stop(void) {
  stand_in_information_stop();
  remove_regions(ARRAY_SIZE(regions));
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A stand-in for the NVIDIA driver, for cudabpf's tests");
MODULE_VERSION("580.159.04");
