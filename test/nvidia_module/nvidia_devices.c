// SPDX-License-Identifier: GPL-2.0
/* A stand-in for nvidia.ko, for tests without a GPU: the devices; the functions that a tracer can
 * attach to, with the real names and signatures; and ioctls that it counts and answers by rules.
 *
 * Up to 535 the devices belong to a "frontend", whose functions call the modules' own. Built with
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
#include "frontend.h"
#include "rules.h"

struct opened {
  int node;
  wait_queue_head_t waiting;
  bool event; /* an event was requested, and has come */
};

static int node_of(const struct file* file) {
  return ((const struct opened*)file->private_data)->node;
}

static noinline int nvidia_open(struct inode* inode, struct file* file) {
  struct opened* opened = kzalloc(sizeof(*opened), GFP_KERNEL);

  if (!opened) return -ENOMEM;
  opened->node = iminor(inode);
  init_waitqueue_head(&opened->waiting);
  file->private_data = opened;
  stand_in_count(opened->node, OP_OPEN, 0, 0);
  return 0;
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

/* The struct is copied in whole, answered, and copied back, even if the status is a failure. */
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

static struct nvidia_module nvidia = {
    THIS_MODULE, 0, nvidia_open, nvidia_close, nvidia_mmap, nvidia_ioctl, nvidia_poll};
static struct nvidia_module* modules[2] = {&nvidia}; /* by instance */
static DEFINE_MUTEX(modules_lock);

static struct nvidia_module* module_of(const struct inode* inode) {
  return READ_ONCE(modules[iminor(inode) == NODE_MODESET]);
}

int nvidia_register_module(struct nvidia_module* module) {
  mutex_lock(&modules_lock);
  WRITE_ONCE(modules[module->instance], module);
  mutex_unlock(&modules_lock);
  return 0;
}
EXPORT_SYMBOL_GPL(nvidia_register_module);

void nvidia_unregister_module(struct nvidia_module* module) {
  mutex_lock(&modules_lock);
  WRITE_ONCE(modules[module->instance], NULL);
  mutex_unlock(&modules_lock);
}
EXPORT_SYMBOL_GPL(nvidia_unregister_module);

/* An open device keeps its module, so that the other modules always find it. */
int nvidia_frontend_open(struct inode* inode, struct file* file);
noinline int nvidia_frontend_open(struct inode* inode, struct file* file) {
  struct nvidia_module* module;
  int result = -ENODEV;

  mutex_lock(&modules_lock);
  module = module_of(inode);
  if (module && try_module_get(module->owner)) {
    result = module->open(inode, file);
    if (result) module_put(module->owner);
  }
  mutex_unlock(&modules_lock);
  return result;
}

int nvidia_frontend_close(struct inode* inode, struct file* file);
noinline int nvidia_frontend_close(struct inode* inode, struct file* file) {
  struct nvidia_module* module = module_of(inode);
  int result = module->close(inode, file);

  module_put(module->owner);
  return result;
}

unsigned int nvidia_frontend_poll(struct file* file, poll_table* wait);
noinline unsigned int nvidia_frontend_poll(struct file* file, poll_table* wait) {
  return module_of(file_inode(file))->poll(file, wait);
}

int nvidia_frontend_mmap(struct file* file, struct vm_area_struct* area);
noinline int nvidia_frontend_mmap(struct file* file, struct vm_area_struct* area) {
  return module_of(file_inode(file))->mmap(file, area);
}

int nvidia_frontend_ioctl(struct inode* inode, struct file* file, unsigned int cmd,
                          unsigned long arg);
noinline int nvidia_frontend_ioctl(struct inode* inode, struct file* file, unsigned int cmd,
                                   unsigned long arg) {
  return module_of(inode)->ioctl(inode, file, cmd, arg);
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

/* Their names in /proc/devices. */
static struct region {
  int first, count;
  const char* name;
  struct cdev device;
} regions[] = {
#ifdef FRONTEND
    {0, NODE_CTL + 1, "nvidia-frontend"},
#else
    {0, NODE_LAST_GPU + 1, "nvidia"},
    {NODE_CTL, 1, "nvidiactl"},
#endif
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
  cdev_init(&region->device, &operations);
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
