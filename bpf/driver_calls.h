/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations on the NVIDIA driver's devices, each with a record at its begin and one at its end.
 * The same bodies serve every way in which the kernel lets us see them. */
#ifndef CUDABPF_DRIVER_CALLS_H
#define CUDABPF_DRIVER_CALLS_H

#include "call.h"
#include "operations.h"

/* The driver's devices. Majors are assigned when modules load, so userspace may change this table
 * at any time. */
struct cb_driver_device driver_devices[CB_DRIVER_DEVICES];
struct cb_ioctl_plan escape_plans[CB_IOCTL_PLANS];
struct cb_ioctl_plan uvm_plans[CB_IOCTL_PLANS];

/* Where userspace found the fields of the driver's tracepoint. */
struct cb_xid_layout xid_layout;

extern void* bpf_rdonly_cast(const void* object, __u32 type) __ksym __weak;

/* The device that a descriptor of the current process refers to; 0: none. Not static, like the
 * other such functions, so that the verifier checks it once, and not with each way that leads
 * there. */
__noinline __u32 device_of(__u32 fd) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct fdtable* table = task->files->fdt;
  if (fd >= table->max_fds) return 0;
  struct file* file = 0;
  bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
  if (bpf_ksym_exists(bpf_rdonly_cast)) { /* a direct read costs less than a helper */
    struct file* typed = bpf_rdonly_cast(file, bpf_core_type_id_kernel(struct file));
    return typed->f_inode->i_rdev;
  }
  struct inode* inode = 0;
  __u32 device = 0;
  bpf_probe_read_kernel(&inode, sizeof(inode), &file->f_inode);
  bpf_probe_read_kernel(&device, sizeof(device), &inode->i_rdev);
  return device;
}

/* enum cb_driver_node; CB_NODE_NONE if the device is not the driver's. */
__noinline __u32 node_of(__u32 device) {
  if (!device) return CB_NODE_NONE;
  for (int i = 0; i < CB_DRIVER_DEVICES; i++) {
    struct cb_driver_device* known = &driver_devices[i];
    if (known->node == CB_NODE_NONE) break;
    if ((device & known->mask) == known->device) return known->node;
  }
  return CB_NODE_NONE;
}

/* The kernel closes what a process leaves open after its exit has been recorded; that is no
 * operation of the process. */
#define PF_EXITING 4

static __always_inline bool may_be_selected(struct ids ids) {
  if (!is_traced(ids.pid) && !may_be_adopted(ids.pid)) return false;
  return !(bpf_get_current_task_btf()->flags & PF_EXITING);
}

static __always_inline struct cb_ioctl_plan* plan_of_ioctl(__u32 node, __u32 command) {
  if (node == CB_NODE_RM) return &escape_plans[index_of(command, CB_IOCTL_PLANS)];
  __u32 index = command;
  if (command >> 28 == 3) index = CB_UVM_SPECIAL + (command & 3);
  if (index >= CB_IOCTL_PLANS) return 0;
  return &uvm_plans[index_of(index, CB_IOCTL_PLANS)];
}

#define XFER_ESCAPE \
  211 /* NV_ESC_IOCTL_XFER_CMD: passes an escape's number, its size and its struct's address */
#define XFER_MAX_SIZE 16384

/* Reads what the struct points to. If its size is not given, perhaps only a part can be read. */
static __always_inline void read_parameters(struct cb_driver* record, struct cb_ioctl_plan* plan,
                                            __u64 argument) {
  __u64 from = 0;
  __u64 size = plan->follow_max;
  bool sized = plan->follow_size_at;
  if (bpf_probe_read_user(&from, sizeof(from), (void*)(argument + plan->follow_at)) || !from)
    return;
  if (sized) {
    __u32 given = 0;
    bpf_probe_read_user(&given, sizeof(given), (void*)(argument + plan->follow_size_at));
    if (given < size) size = given;
  }
  if (!size) return;
  size = at_most(size, CB_MAX_PARAMS);
  if (!bpf_probe_read_user(record->parameters, size, (void*)from)) {
    record->head.string_size = size;
  } else if (sized) {
    record->head.flags |= CB_READ_FAULT;
  } else if (!bpf_probe_read_user(record->parameters, 8, (void*)from)) {
    record->head.string_size = 8;
  }
}

static __always_inline void read_ioctl(struct cb_driver* record, struct operation* operation,
                                       __u32 node) {
  __u64 argument = record->argument;
  __u32 command = record->command, size = command >> 16 & 0x3fff;
  if (node == CB_NODE_RM && (command & 0xff) == XFER_ESCAPE) {
    struct {
      __u32 number, size;
      __u64 at;
    } xfer = {};
    if (bpf_probe_read_user(&xfer, sizeof(xfer), (void*)argument)) {
      record->head.flags |= CB_READ_FAULT;
    } else {
      record->head.flags |= CB_INDIRECT;
      record->inner = command = xfer.number;
      record->inner_size = size = xfer.size;
      argument = xfer.at;
      if (size > XFER_MAX_SIZE) size = 0; /* the driver refuses it */
    }
  }
  struct cb_ioctl_plan* plan = plan_of_ioctl(node, command);
  if (node != CB_NODE_RM) size = 0;
  if (plan && plan->size) size = plan->size;
  if (!size) return;
  if (operation) {
    operation->argument = argument;
    operation->size = size;
    operation->status_at = plan ? plan->status_at : 0;
  }
  __u64 read = at_most(size, CB_MAX_IOCTL);
  if (bpf_probe_read_user(record->structure, read, (void*)argument)) {
    record->head.flags |= CB_READ_FAULT;
    return;
  }
  record->head.struct_size = read;
  if (plan && plan->follow_at) read_parameters(record, plan, argument);
}

static __always_inline void fill_driver_head(struct cb_head* head, struct ids ids, __u8 kind,
                                             __u32 op, __u64 ts) {
  fill_head(head, ids, kind);
  head->ts = ts;
  head->sp = 0;
  head->function = op;
  head->flags = 0;
  head->nargs = 0;
  head->struct_size = 0;
  head->string_size = 0;
}

/* Reserves a record in the ring and fills its head; 0 if there is no room. Counts either way. Every
 * record that is begun must be submitted. */
static __always_inline void* begin_record(__u64 size, struct ids ids, __u8 kind, __u32 op,
                                          __u64 ts) {
  struct cb_head* head = reserve(size, ids.tid, CB_DROPPED_DRIVER);
  if (head) fill_driver_head(head, ids, kind, op, ts);
  return head;
}

struct begun {
  struct ids ids;
  __u32 device, node, command;
  __u64 argument;
};

/* `op` and `ts` are no part of what is begun: where a program is loaded without its functions'
 * types, as copies are (attach_fentry), Linux 6.1's verifier takes a constant that it saw in memory
 * that is handed over for all that will ever be there, and removes the code for the rest. */
__noinline int operation_begins(const struct begun* begun, __u32 op, __u64 ts) {
  if (!begun) return 0;
  struct cb_driver* record = begin_record(sizeof(*record), begun->ids, CB_DRIVER, op, ts);
  if (!record) return 0;
  record->device = begun->device;
  record->command = begun->command;
  record->argument = begun->argument;
  record->inner = record->inner_size = 0;
  struct operation* operation = claim_operation(owner_of(op));
  if (operation) {
    operation->op = op;
    operation->recorded = true;
    operation->size = 0;
  } else {
    record->head.flags |= CB_OUT_LOST;
  }
  if (op == CB_IOCTL) read_ioctl(record, operation, begun->node);
  submit(record);
  return 0;
}

__noinline int operation_ends(__u32 pid, __u32 tid, const struct operation* operation,
                              __s64 result) {
  if (!operation) return 0;
  struct ids ids = {pid, tid};
  struct cb_driver_return* record =
      begin_record(sizeof(*record), ids, CB_DRIVER_RETURN, operation->op, bpf_ktime_get_ns());
  if (!record) return 0;
  record->result = result;
  record->status = record->reserved = 0;
  __u64 size = at_most(operation->size, CB_MAX_IOCTL);
  if (size && !result) {
    if (bpf_probe_read_user(record->structure, size, (void*)operation->argument))
      record->head.flags |= CB_READ_FAULT;
    else
      record->head.struct_size = size;
    if (operation->status_at &&
        !bpf_probe_read_user(&record->status, sizeof(record->status),
                             (void*)(operation->argument + operation->status_at)))
      record->head.flags |= CB_STATUS_READ;
  }
  submit(record);
  return 0;
}

/* --- seen as system calls */

/* The first of the driver's devices among the polled descriptors. */
#define POLLED_AT_MOST 8
__noinline __u32 polled_device(__u64 fds, __u64 count_of_fds) {
  for (__u32 i = 0; i < POLLED_AT_MOST && i < count_of_fds; i++) {
    __u32 fd = 0;
    if (bpf_probe_read_user(&fd, sizeof(fd), (void*)(fds + i * 8))) return 0;
    __u32 device = device_of(fd);
    if (node_of(device)) return device;
  }
  return 0;
}

struct driver_request {
  __u32 op; /* enum cb_driver_op */
  __u32 fd;
  __u32 command;
  __u64 argument;
  __u64 count; /* of poll's descriptors */
};

/* Most system calls are not on the driver's devices, so the cheap checks come first. */
static __always_inline int system_call_begins(struct driver_request request) {
  if (selection == CB_SELECT_LISTED && !is_traced(current_ids().pid)) return 0;
  if (request.op == CB_OPEN) {
    /* The device is known only once it is open. */
    struct ids ids = current_ids();
    if (!may_be_selected(ids)) return 0;
    struct operation* operation = claim_operation(owner_of(CB_OPEN));
    if (!operation) {
      count(CB_ENTERED);
      dropped(ids.tid, CB_DROPPED_DRIVER);
      return 0;
    }
    operation->op = CB_OPEN;
    operation->recorded = false;
    operation->size = 0;
    operation->ts = bpf_ktime_get_ns();
    return 0;
  }
  __u32 device = request.op == CB_POLL ? polled_device(request.argument, request.count)
                                       : device_of(request.fd);
  __u32 node = node_of(device);
  if (!node) return 0;
  struct ids ids = current_ids();
  if (!may_be_selected(ids) || !selected(ids)) return 0;
  struct begun begun = {ids, device, node, request.command, request.argument};
  return operation_begins(&begun, request.op, bpf_ktime_get_ns());
}

static __always_inline int system_call_ends(struct trace_event_raw_sys_exit* ctx, __u32 op) {
  struct operation* operation = operation_of(owner_of(op));
  if (!operation || operation->op != op) return 0; /* an earlier one whose end was not seen */
  struct ids ids = current_ids();
  if (!may_be_selected(ids)) {
    operation->owner = 0;
    return 0;
  }
  __s64 result = ctx->ret;
  if (!operation->recorded) {
    __u32 device = result >= 0 ? device_of(result) : 0;
    __u32 node = node_of(device);
    struct begun begun = {ids, device, node, 0, 0};
    if (node && selected(ids)) operation_begins(&begun, CB_OPEN, operation->ts);
  }
  /* The value of a descriptor or an address says nothing about the driver. */
  if ((operation->op == CB_OPEN || operation->op == CB_MMAP) && (result >= 0 || result < -4095))
    result = 0;
  if (operation->recorded) operation_ends(ids.pid, ids.tid, operation, result);
  operation->owner = 0;
  return 0;
}

/* --- seen at the driver's own functions, so that no other calls pay */

static __always_inline __u32 device_of_file(struct file* file) {
  return BPF_CORE_READ(file, f_inode, i_rdev);
}

/* The device that poll(2) was called for: its arguments are in the registers saved at its entry. */
static __always_inline __u32 device_of_poll(const void* at) {
  struct pt_regs entered;
  if (bpf_probe_read_kernel(&entered, sizeof(entered), at)) return 0;
  return polled_device(PT_REGS_PARM1(&entered), PT_REGS_PARM2(&entered));
}

/* Interrupts belong to no process. One record is made when they end. A handler may call another,
 * but only soon after it began: the end of an older begin was never seen. */
#define NESTED_NS 100000000ULL

static __always_inline int interrupt_begins(__u32 op) {
  if (selection != CB_SELECT_ALL) return 0;
  __u64 now = bpf_ktime_get_ns();
  __u32 owner = owner_of(op);
  struct operation* operation = operation_of(owner);
  if (operation && now - operation->ts < NESTED_NS) return 0;
  if (!operation) operation = claim_operation(owner);
  if (operation) {
    operation->ts = now;
  } else {
    count(CB_ENTERED);
    dropped(0, CB_DROPPED_DRIVER);
  }
  return 0;
}

static __always_inline int interrupt_ends(__u32 op) {
  struct operation* operation = operation_of(owner_of(op));
  if (!operation) return 0;
  __u64 began = operation->ts;
  operation->owner = 0;
  if (selection != CB_SELECT_ALL) return 0;
  struct ids no_process = {.pid = 0, .tid = bpf_get_smp_processor_id()};
  struct cb_interrupt* record =
      begin_record(sizeof(*record), no_process, CB_INTERRUPT, op, bpf_ktime_get_ns());
  if (!record) return 0;
  record->began = began;
  submit(record);
  return 0;
}

/* The arguments of a function of the driver. */
struct driver_arguments {
  __u64 word[3];
};

static __always_inline int function_begins(struct driver_arguments with, __u32 op) {
  if (op >= CB_ISR) return interrupt_begins(op);
  struct ids ids = current_ids();
  if (!may_be_selected(ids)) return 0;
  __u32 device = 0, command = 0;
  __u64 argument = 0;
  switch (op) {
    case CB_IOCTL: /* (file, command, argument) */
      device = device_of_file((struct file*)with.word[0]);
      command = with.word[1];
      argument = with.word[2];
      break;
    case CB_MMAP: { /* (file, area) */
      struct vm_area_struct* area = (struct vm_area_struct*)with.word[1];
      device = device_of_file((struct file*)with.word[0]);
      argument = BPF_CORE_READ(area, vm_end) - BPF_CORE_READ(area, vm_start);
      break;
    }
    case CB_OPEN: /* (inode, file) */
    case CB_CLOSE: {
      struct inode* inode = (struct inode*)with.word[0];
      device = BPF_CORE_READ(inode, i_rdev);
      break;
    }
    case CB_POLL:
      device = device_of_poll((const void*)with.word[0]);
      break;
    case CB_FAULT: {
      struct vm_fault* fault = (struct vm_fault*)with.word[0];
      device = device_of_file(BPF_CORE_READ(fault, vma, vm_file));
      command = BPF_CORE_READ(fault, flags) & FAULT_FLAG_WRITE;
      argument = BPF_CORE_READ(fault, address);
      break;
    }
  }
  __u32 node = node_of(device);
  if (!node || !selected(ids)) return 0;
  struct begun begun = {ids, device, node, command, argument};
  return operation_begins(&begun, op, bpf_ktime_get_ns());
}

static __always_inline int function_ends(__s64 result, __u32 op) {
  if (op >= CB_ISR) return interrupt_ends(op);
  struct ids ids = current_ids();
  if (!may_be_selected(ids)) return 0;
  struct operation* operation = operation_of(owner_of(op));
  if (!operation || operation->op != op) return 0; /* an earlier one whose end was not seen */
  if (op != CB_IOCTL && op != CB_POLL) result = (__s32)result;
  operation_ends(ids.pid, ids.tid, operation, result);
  operation->owner = 0;
  return 0;
}

/* --- seen at the driver's tracepoint */

/* The low half of a tracepoint's string field is the string's offset. */
static __always_inline long read_tracepoint_string(char* to, __u32 size, const void* event,
                                                   __u16 field_at) {
  __u32 where = 0;
  to[0] = 0;
  if (bpf_probe_read_kernel(&where, sizeof(where), event + field_at)) return 0;
  return bpf_probe_read_kernel_str(to, size, event + (where & 0xffff));
}

static __always_inline int xid_reported(const void* event) {
  struct cb_xid* record =
      begin_record(sizeof(*record), current_ids(), CB_XID, 0, bpf_ktime_get_ns());
  if (!record) return 0;
  record->number = record->reserved = 0;
  bpf_probe_read_kernel(&record->number, sizeof(record->number), event + xid_layout.number_at);
  read_tracepoint_string(record->device, sizeof(record->device), event, xid_layout.device_at);
  if (read_tracepoint_string(record->message, sizeof(record->message), event,
                             xid_layout.message_at) == sizeof(record->message))
    record->head.flags |= CB_STRING_CUT; /* perhaps it fits exactly */
  submit(record);
  return 0;
}

#endif
