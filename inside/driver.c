/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* libcuda's operations on the NVIDIA driver, seen at libcuda's own imports of libc's functions:
 * each makes the same two records as in bpf/driver_calls.h.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "recording.h"

#define PAGE 4096ULL

static const struct ci_driver* driver(void) {
  return (const struct ci_driver*)((const __u8*)ci_process->shared + CI_DRIVER_AT);
}

/* True if operations are recorded; otherwise, nothing else here may be read. */
static bool is_recorded(void) {
  return ci_state() == CI_TRACED && __atomic_load_n(&ci_process->shared->on, __ATOMIC_RELAXED) &&
         driver()->recorded;
}

/* The device that a descriptor refers to, as the kernel numbers it; 0: none. */
static __u32 device_of(int fd) {
  struct stat status;
  if (fd < 0 || ci_system(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) != 0) return 0;
  if (!S_ISCHR(status.st_mode)) return 0;
  return major(status.st_rdev) << 20 | minor(status.st_rdev);
}

/* enum cb_driver_node; CB_NODE_NONE if the device is not the driver's. */
static __u32 node_of(__u32 device) {
  const struct cb_driver_device* known = driver()->devices;
  if (!device) return CB_NODE_NONE;
  for (int i = 0; i < CB_DRIVER_DEVICES && known[i].node != CB_NODE_NONE; i++)
    if ((device & known[i].mask) == known[i].device) return known[i].node;
  return CB_NODE_NONE;
}

static const struct cb_ioctl_plan* plan_of_ioctl(__u32 node, __u32 command) {
  if (node == CB_NODE_RM) return &driver()->escape_plans[command & (CB_IOCTL_PLANS - 1)];
  __u32 index = command;
  if (command >> 28 == 3) index = CB_UVM_SPECIAL + (command & 3);
  return index < CB_IOCTL_PLANS ? &driver()->uvm_plans[index] : NULL;
}

/* An operation under way. */
struct operation {
  enum cb_driver_op op;
  __u32 device, command;
  __u64 argument;
  __u64 began;
  /* ioctl: its struct, when it has been looked at */
  __u64 at;
  __u32 size, status_at;
  __u64 sp;
};

#define XFER_ESCAPE 211
#define XFER_MAX_SIZE 16384

/* Reads what the struct points to. If its size is not given, perhaps only a part can be read. */
static void read_parameters(struct cb_driver* record, const struct cb_ioctl_plan* plan,
                            const struct operation* operation) {
  __u64 from = 0, size = plan->follow_max;
  if (!ci_read(&from, operation->at + plan->follow_at, 8, operation->sp) || !from) return;
  if (plan->follow_size_at) {
    __u32 given = 0;
    ci_read(&given, operation->at + plan->follow_size_at, 4, operation->sp);
    if (given < size) size = given;
  }
  if (!size) return;
  if (size > CB_MAX_PARAMS) size = CB_MAX_PARAMS;
  if (ci_read(record->parameters, from, size, operation->sp))
    record->head.string_size = (__u16)size;
  else if (plan->follow_size_at)
    record->head.flags |= CB_READ_FAULT;
  else if (ci_read(record->parameters, from, 8, operation->sp))
    record->head.string_size = 8;
}

static void read_ioctl(struct cb_driver* record, struct operation* operation, __u32 node) {
  __u32 command = operation->command, size = command >> 16 & 0x3fff;
  operation->at = operation->argument;
  if (node == CB_NODE_RM && (command & 0xff) == XFER_ESCAPE) {
    struct {
      __u32 number, size;
      __u64 at;
    } xfer;
    if (ci_read(&xfer, operation->argument, sizeof(xfer), operation->sp)) {
      record->head.flags |= CB_INDIRECT;
      record->inner = command = xfer.number;
      record->inner_size = size = xfer.size;
      operation->at = xfer.at;
      if (size > XFER_MAX_SIZE) size = 0; /* the driver refuses it */
    } else {
      record->head.flags |= CB_READ_FAULT;
    }
  }
  const struct cb_ioctl_plan* plan = plan_of_ioctl(node, command);
  if (node != CB_NODE_RM) size = 0;
  if (plan && plan->size) size = plan->size;
  if (!size) return;
  operation->size = size;
  operation->status_at = plan ? plan->status_at : 0;
  __u32 read = size < CB_MAX_IOCTL ? size : CB_MAX_IOCTL;
  if (!ci_read(record->structure, operation->at, read, operation->sp)) {
    record->head.flags |= CB_READ_FAULT;
    return;
  }
  record->head.struct_size = (__u8)read;
  if (plan && plan->follow_at) read_parameters(record, plan, operation);
}

/* False: its end is not recorded, either. */
static bool begins(struct operation* operation) {
  __u32 node = node_of(operation->device);
  struct ci_thread* thread = node ? ci_recording_thread(CI_ALL, CB_DROPPED_DRIVER) : NULL;
  if (!thread) return false;
  operation->size = operation->status_at = 0;
  operation->sp = (__u64)__builtin_frame_address(0);
  struct cb_driver* record = ci_reserve(thread, sizeof(*record), CB_DROPPED_DRIVER);
  if (!record) return true;
  ci_fill_head(&record->head, thread, CB_DRIVER, operation->began ? operation->began : ci_now());
  record->head.sp = 0;
  record->head.function = (__u16)operation->op;
  record->device = operation->device;
  record->command = operation->command;
  record->argument = operation->argument;
  record->inner = record->inner_size = 0;
  if (operation->op == CB_IOCTL) read_ioctl(record, operation, node);
  ci_commit(thread, sizeof(*record));
  return true;
}

static void ends(const struct operation* operation, __s64 result) {
  struct ci_thread* thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_DRIVER);
  struct cb_driver_return* record =
      thread ? ci_reserve(thread, sizeof(*record), CB_DROPPED_DRIVER) : NULL;
  if (!record) return;
  ci_fill_head(&record->head, thread, CB_DRIVER_RETURN, ci_now());
  record->head.sp = 0;
  record->head.function = (__u16)operation->op;
  record->result = result;
  record->status = record->reserved = 0;
  __u32 size = operation->size < CB_MAX_IOCTL ? operation->size : CB_MAX_IOCTL;
  if (size && !result) {
    if (ci_read(record->structure, operation->at, size, operation->sp))
      record->head.struct_size = (__u8)size;
    else
      record->head.flags |= CB_READ_FAULT;
    if (operation->status_at &&
        ci_read(&record->status, operation->at + operation->status_at, 4, operation->sp))
      record->head.flags |= CB_STATUS_READ;
  }
  ci_commit(thread, sizeof(*record));
}

/* The end of an operation that returns a descriptor or an address, which says nothing. */
static void ends_well_or_not(const struct operation* operation, bool failed) {
  int error = errno;
  ends(operation, failed ? -error : 0);
  errno = error;
}

/* ----- what libcuda calls in place of libc's functions. Nothing here sets errno. */

static int seen_ioctl(int fd, unsigned long request, void* argument) {
  if (!is_recorded()) return ioctl(fd, request, argument);
  struct operation operation = {.op = CB_IOCTL,
                                .device = device_of(fd),
                                .command = (__u32)request,
                                .argument = (__u64)argument};
  bool recorded = begins(&operation);
  int result = ioctl(fd, request, argument);
  int error = errno;
  if (recorded) ends(&operation, result < 0 ? -error : result);
  errno = error;
  return result;
}

static int opened(int fd, __u64 began) {
  struct operation operation = {.op = CB_OPEN, .device = device_of(fd), .began = began};
  int error = errno;
  if (fd >= 0 && begins(&operation)) ends_well_or_not(&operation, false);
  errno = error;
  return fd;
}

/* The mode is given only if a file may be created; otherwise this reads something harmless. */
static int seen_open(const char* path, int flags, mode_t mode) {
  if (!is_recorded()) return open(path, flags, mode);
  __u64 began = ci_now();
  return opened(open(path, flags, mode), began);
}

static int seen_close(int fd) {
  if (!is_recorded()) return close(fd);
  struct operation operation = {.op = CB_CLOSE, .device = device_of(fd)};
  bool recorded = begins(&operation);
  int result = close(fd);
  if (recorded) ends_well_or_not(&operation, result < 0);
  return result;
}

static void* seen_mmap(void* address, size_t length, int protection, int flags, int fd,
                       off_t offset) {
  if (!is_recorded() || fd < 0) return mmap(address, length, protection, flags, fd, offset);
  struct operation operation = {.op = CB_MMAP, .device = device_of(fd), .argument = length};
  bool recorded = begins(&operation);
  void* result = mmap(address, length, protection, flags, fd, offset);
  if (recorded) ends_well_or_not(&operation, result == MAP_FAILED);
  return result;
}

/* The first of the driver's devices among the polled descriptors. */
#define POLLED_AT_MOST 8
static __u32 polled_device(const struct pollfd* fds, nfds_t count) {
  __u64 sp = (__u64)__builtin_frame_address(0);
  for (nfds_t i = 0; i < POLLED_AT_MOST && i < count; i++) {
    struct pollfd one;
    if (!ci_read(&one, (__u64)&fds[i], sizeof(one), sp)) return 0;
    __u32 device = device_of(one.fd);
    if (node_of(device)) return device;
  }
  return 0;
}

static int seen_poll(struct pollfd* fds, nfds_t count, int timeout) {
  if (!is_recorded()) return poll(fds, count, timeout);
  struct operation operation = {
      .op = CB_POLL, .device = polled_device(fds, count), .argument = (__u64)fds};
  bool recorded = begins(&operation);
  int result = poll(fds, count, timeout);
  int error = errno;
  if (recorded) ends(&operation, result < 0 ? -error : result);
  errno = error;
  return result;
}

/* ----- putting these into libcuda's imports */

static const struct {
  const char* name;
  void* seen;
} imports[] = {{"ioctl", (void*)seen_ioctl}, {"open", (void*)seen_open},
               {"open64", (void*)seen_open}, {"close", (void*)seen_close},
               {"mmap", (void*)seen_mmap},   {"mmap64", (void*)seen_mmap},
               {"poll", (void*)seen_poll}};

static bool same_text(const char* one, const char* other) {
  while (*one && *one == *other) one++, other++;
  return *one == *other;
}

/* Imports that are bound at once have been made read-only. */
static void replace(const struct ci_library* library, void** slot, void* with) {
  bool sealed = (__u64)slot >= library->sealed_from && (__u64)slot < library->sealed_to;
  void* page = (void*)((__u64)slot & ~(PAGE - 1));
  if (sealed && mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(slot, with, __ATOMIC_RELAXED);
  if (sealed) mprotect(page, PAGE, PROT_READ);
}

struct relocations {
  const ElfW(Rela) * first;
  __u64 bytes;
};

static void replace_named(const struct ci_library* library, struct relocations in,
                          const ElfW(Sym) * symbols, const char* names) {
  for (const ElfW(Rela)* one = in.first; one < in.first + in.bytes / sizeof(*one); one++) {
    __u64 type = ELF64_R_TYPE(one->r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const char* name = names + symbols[ELF64_R_SYM(one->r_info)].st_name;
    for (size_t i = 0; i < sizeof(imports) / sizeof(imports[0]); i++)
      if (same_text(name, imports[i].name))
        replace(library, (void**)(library->base + one->r_offset), imports[i].seen);
  }
}

void ci_watch_imports(const struct ci_library* library) {
  if (!library->dynamic || !is_recorded()) return;
  struct relocations plt = {0}, others = {0};
  const ElfW(Sym)* symbols = NULL;
  const char* names = NULL;
  for (const ElfW(Dyn)* entry = (const ElfW(Dyn)*)library->dynamic; entry->d_tag != DT_NULL;
       entry++) {
    /* The linker has turned these into addresses. */
    const void* at = (const void*)entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_JMPREL:
        plt.first = at;
        break;
      case DT_PLTRELSZ:
        plt.bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        others.first = at;
        break;
      case DT_RELASZ:
        others.bytes = entry->d_un.d_val;
        break;
      case DT_SYMTAB:
        symbols = at;
        break;
      case DT_STRTAB:
        names = at;
        break;
    }
  }
  if (!symbols || !names) return;
  replace_named(library, plt, symbols, names);
  replace_named(library, others, symbols, names);
}
