// SPDX-License-Identifier: GPL-2.0
/* A stand-in for nvidia-uvm.ko; see nvidia_devices.c. */
#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "rules.h"

/* UVM's ioctls are plain numbers: only the number says what the struct is. */
struct layout {
  u32 number;
  u16 size;
  u16 status_at;
};

static const struct layout layouts[] = {
    {23, 16, 8},         /* CREATE_RANGE_GROUP */
    {24, 16, 8},         /* DESTROY_RANGE_GROUP */
    {25, 32, 28},        /* REGISTER_GPU_VASPACE */
    {26, 20, 16},        /* UNREGISTER_GPU_VASPACE */
    {27, 56, 48},        /* REGISTER_CHANNEL */
    {28, 28, 24},        /* UNREGISTER_CHANNEL */
    {29, 36, 32},        /* ENABLE_PEER_ACCESS */
    {30, 36, 32},        /* DISABLE_PEER_ACCESS */
    {31, 32, 24},        /* SET_RANGE_GROUP */
    {33, 9264, 9260},    /* MAP_EXTERNAL_ALLOCATION */
    {34, 24, 16},        /* FREE */
    {37, 40, 36},        /* REGISTER_GPU */
    {38, 20, 16},        /* UNREGISTER_GPU */
    {39, 8, 4},          /* PAGEABLE_MEM_ACCESS */
    {40, 272, 264},      /* PREVENT_MIGRATION_RANGE_GROUPS */
    {41, 272, 264},      /* ALLOW_MIGRATION_RANGE_GROUPS */
    {42, 40, 36},        /* SET_PREFERRED_LOCATION */
    {43, 24, 16},        /* UNSET_PREFERRED_LOCATION */
    {44, 24, 16},        /* ENABLE_READ_DUPLICATION */
    {45, 24, 16},        /* DISABLE_READ_DUPLICATION */
    {46, 40, 32},        /* SET_ACCESSED_BY */
    {47, 40, 32},        /* UNSET_ACCESSED_BY */
    {51, 80, 72},        /* MIGRATE */
    {53, 32, 24},        /* MIGRATE_RANGE_GROUP */
    {54, 20, 16},        /* ENABLE_SYSTEM_WIDE_ATOMICS */
    {55, 20, 16},        /* DISABLE_SYSTEM_WIDE_ATOMICS */
    {56, 56, 48},        /* TOOLS_INIT_EVENT_TRACKER */
    {57, 8, 4},          /* TOOLS_SET_NOTIFICATION_THRESHOLD */
    {58, 16, 8},         /* TOOLS_EVENT_QUEUE_ENABLE_EVENTS */
    {59, 16, 8},         /* TOOLS_EVENT_QUEUE_DISABLE_EVENTS */
    {60, 16, 8},         /* TOOLS_ENABLE_COUNTERS */
    {61, 16, 8},         /* TOOLS_DISABLE_COUNTERS */
    {62, 40, 32},        /* TOOLS_READ_PROCESS_MEMORY */
    {63, 40, 32},        /* TOOLS_WRITE_PROCESS_MEMORY */
    {64, 16, 8},         /* TOOLS_GET_PROCESSOR_UUID_TABLE */
    {65, 40, 32},        /* MAP_DYNAMIC_PARALLELISM_REGION */
    {66, 40, 32},        /* UNMAP_EXTERNAL */
    {67, 4, 0},          /* TOOLS_FLUSH_EVENTS */
    {68, 9248, 9240},    /* ALLOC_SEMAPHORE_POOL */
    {69, 4, 0},          /* CLEAN_UP_ZOMBIE_RESOURCES */
    {70, 24, 20},        /* PAGEABLE_MEM_ACCESS_ON_GPU */
    {71, 24, 20},        /* POPULATE_PAGEABLE */
    {72, 24, 16},        /* VALIDATE_VA_RANGE */
    {73, 24, 16},        /* CREATE_EXTERNAL_RANGE */
    {74, 40, 32},        /* MAP_EXTERNAL_SPARSE */
    {75, 8, 4},          /* MM_INITIALIZE */
    {76, 56, 48},        /* TOOLS_INIT_EVENT_TRACKER_V2 */
    {77, 16, 8},         /* TOOLS_GET_PROCESSOR_UUID_TABLE_V2 */
    {78, 56, 52},        /* ALLOC_DEVICE_P2P */
    {79, 4, 0},          /* CLEAR_ALL_ACCESS_COUNTERS */
    {80, 32, 24},        /* DISCARD */
    {0x30000001, 16, 8}, /* INITIALIZE */
};

static int node_of(const struct file* file) { return NODE_UVM + iminor(file_inode(file)); }

static noinline long uvm_ioctl(struct file* file, unsigned int cmd, unsigned long arg) {
  const struct layout* layout = NULL;
  struct reply reply;
  void* structure;
  long result = 0;
  int i;

  stand_in_count(node_of(file), OP_IOCTL, cmd, 0);
  for (i = 0; i < ARRAY_SIZE(layouts) && !layout; ++i) {
    if (layouts[i].number == cmd) layout = &layouts[i];
  }
  if (!layout) return -ENOSYS;
  structure = kvzalloc(layout->size, GFP_KERNEL);
  if (!structure) return -ENOMEM;
  if (copy_from_user(structure, (void __user*)arg, layout->size)) {
    result = -EFAULT;
  } else {
    reply = stand_in_reply(node_of(file), cmd, 0);
    result = reply.result;
    memcpy(structure + layout->status_at, &reply.status, sizeof(reply.status));
    if (!result && copy_to_user((void __user*)arg, structure, layout->size)) result = -EFAULT;
  }
  kvfree(structure);
  return result;
}

static noinline long uvm_unlocked_ioctl_entry(struct file* file, unsigned int cmd,
                                              unsigned long arg) {
  return uvm_ioctl(file, cmd, arg);
}

static noinline long uvm_tools_unlocked_ioctl_entry(struct file* file, unsigned int cmd,
                                                    unsigned long arg) {
  return uvm_ioctl(file, cmd, arg);
}

static noinline int uvm_open_entry(struct inode* inode, struct file* file) {
  stand_in_count(NODE_UVM, OP_OPEN, 0, 0);
  return 0;
}

/* Named as a compiler names a function whose signature it has changed: the real one has no BTF. */
static noinline int uvm_release_entry(struct inode* inode,
                                      struct file* file) __asm__("uvm_release_entry.isra.0");
static noinline int uvm_release_entry(struct inode* inode, struct file* file) {
  stand_in_count(NODE_UVM, OP_CLOSE, 0, 0);
  return 0;
}

static noinline int uvm_tools_open_entry(struct inode* inode, struct file* file) {
  stand_in_count(NODE_UVM_TOOLS, OP_OPEN, 0, 0);
  return 0;
}

static noinline int uvm_tools_release_entry(struct inode* inode, struct file* file) {
  stand_in_count(NODE_UVM_TOOLS, OP_CLOSE, 0, 0);
  return 0;
}

static noinline unsigned int uvm_tools_poll_entry(struct file* file, poll_table* wait) {
  stand_in_count(NODE_UVM_TOOLS, OP_POLL, 0, 0);
  return 0;
}

static noinline vm_fault_t uvm_vm_fault_entry(struct vm_fault* fault) {
  stand_in_count(NODE_UVM, OP_FAULT, 0, 0);
  fault->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
  return fault->page ? 0 : VM_FAULT_OOM;
}

static const struct vm_operations_struct mapping = {.fault = uvm_vm_fault_entry};

static noinline int uvm_mmap_entry(struct file* file, struct vm_area_struct* area) {
  stand_in_count(NODE_UVM, OP_MMAP, 0, 0);
  area->vm_ops = &mapping;
  return 0;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = uvm_open_entry,
    .release = uvm_release_entry,
    .mmap = uvm_mmap_entry,
    .unlocked_ioctl = uvm_unlocked_ioctl_entry,
    .compat_ioctl = uvm_unlocked_ioctl_entry,
};

static const struct file_operations tools_operations = {
    .owner = THIS_MODULE,
    .open = uvm_tools_open_entry,
    .release = uvm_tools_release_entry,
    .poll = (void*)uvm_tools_poll_entry,
    .unlocked_ioctl = uvm_tools_unlocked_ioctl_entry,
    .compat_ioctl = uvm_tools_unlocked_ioctl_entry,
};

static dev_t first; /* its major is the next that is free */
static struct cdev device, tools_device;

static int __init start(void) {
  int bad = alloc_chrdev_region(&first, 0, 2, "nvidia-uvm");

  if (bad) return bad;
  cdev_init(&device, &operations);
  cdev_init(&tools_device, &tools_operations);
  bad = cdev_add(&device, first, 1);
  if (bad) goto unregister;
  bad = cdev_add(&tools_device, first + 1, 1);
  if (!bad) return 0;
  cdev_del(&device);
unregister:
  unregister_chrdev_region(first, 2);
  return bad;
}

static void __exit stop(void) {
  cdev_del(&tools_device);
  cdev_del(&device);
  unregister_chrdev_region(first, 2);
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A stand-in for NVIDIA's unified memory driver, for cudabpf's tests");
MODULE_VERSION("580.159.04");
