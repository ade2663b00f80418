/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads memory that a call was given. Nothing says that it is mapped, so the kernel reads it; only
 * the thread's own stack above the call is read directly, once the kernel has found it mapped. */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inside.h"

#define PAGE 4096ULL
#define STACK_PAGES 16 /* as far above the stack pointer as it is looked for at once */

static long read_by_kernel(void* to, __u64 size, const struct iovec* from, unsigned parts) {
  struct iovec here = {to, size};
  return ci_system(SYS_process_vm_readv, ci_process->pid, (long)&here, 1, (long)from, parts, 0);
}

/* From the stack pointer's page to the end of `to`'s, is all of it mapped? Remembered: as long as
 * the stack pointer is in there, what lies above it belongs to a stack in use. */
static bool stack_reaches(__u64 sp, __u64 to) {
  struct ci_thread* thread = &ci_thread;
  if (sp >= thread->stack_from && to <= thread->stack_to) return true;
  __u64 first = sp & ~(PAGE - 1);
  unsigned pages = (unsigned)((to - 1 - first) / PAGE) + 1;
  if (pages > STACK_PAGES) return false;
  struct iovec parts[STACK_PAGES];
  char bytes[STACK_PAGES];
  for (unsigned i = 0; i < pages; i++) parts[i] = (struct iovec){(void*)(first + i * PAGE), 1};
  if (read_by_kernel(bytes, pages, parts, pages) != (long)pages) return false;
  thread->stack_from = first;
  thread->stack_to = first + pages * PAGE;
  return true;
}

static void copy(void* to, const void* from, __u64 size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

bool ci_read(void* to, __u64 from, __u64 size, __u64 sp) {
  if (!size) return true;
  if (from >= sp && from - sp < STACK_PAGES * PAGE - CB_LONG_STRING &&
      stack_reaches(sp, from + size)) {
    if (size == 8) /* most are out-pointers */
      __builtin_memcpy(to, (const void*)from, 8);
    else
      copy(to, (const void*)from, size);
    return true;
  }
  struct iovec part = {(void*)from, size};
  return read_by_kernel(to, size, &part, 1) == (long)size;
}

__u32 ci_read_string(char* to, __u64 from, __u32 size) {
  /* What follows the string may not be mapped: the kernel reads whole parts only. */
  struct iovec parts[3];
  unsigned count = 0;
  for (__u64 at = from, end = from + size; at < end && count < 3; count++) {
    __u64 next = (at & ~(PAGE - 1)) + PAGE;
    if (next > end) next = end;
    parts[count] = (struct iovec){(void*)at, next - at};
    at = next;
  }
  long got = read_by_kernel(to, size, parts, count);
  for (long i = 0; i < got; i++)
    if (!to[i]) return (__u32)i + 1;
  return got == (long)size ? size : 0;
}
