/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads memory that a call was given. Nothing says that it is mapped, so the kernel reads it; only
 * the thread's own stack above the call is read directly, once the kernel has found it mapped. */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inside.h"

#define PAGE 4096ULL
#define STACK_PAGES 16       /* memory this far above the stack pointer is taken for the stack */
#define BRIDGED (256 * PAGE) /* the largest gap between two parts of one stack */

static long read_by_kernel(void* to, __u64 size, const struct iovec* from, unsigned parts) {
  struct iovec here = {to, size};
  return ci_system(SYS_process_vm_readv, ci_process->pid, (long)&here, 1, (long)from, parts, 0);
}

static bool is_mapped(__u64 from, __u64 to) {
  while (from < to) {
    struct iovec parts[STACK_PAGES];
    char bytes[STACK_PAGES];
    unsigned pages = 0;
    for (; from < to && pages < STACK_PAGES; from += PAGE)
      parts[pages++] = (struct iovec){(void*)from, 1};
    if (read_by_kernel(bytes, pages, parts, pages) != (long)pages) return false;
  }
  return true;
}

/* From the stack pointer's page to the end of `to`'s, is all of it mapped? What was found is
 * remembered: as long as the stack pointer is in there, what lies above it belongs to a stack in
 * use. Calls come from deep in a program and from near its main in turn, so each extends the known
 * part, including what lies between. */
static bool stack_reaches(__u64 sp, __u64 to) {
  struct ci_thread* thread = &ci_thread;
  __u64 known_from = thread->stack_from, known_to = thread->stack_to;
  if (sp >= known_from && to <= known_to) return true;
  __u64 from = sp & ~(PAGE - 1), until = (to + PAGE - 1) & ~(PAGE - 1);
  if (until - from > STACK_PAGES * PAGE) return false;
  if (!is_mapped(from, until)) return false;
  bool joins = known_to &&
               (until < known_from ? known_from - until <= BRIDGED && is_mapped(until, known_from)
                                   : from <= known_to ||
                                         (from - known_to <= BRIDGED && is_mapped(known_to, from)));
  thread->stack_from = joins && known_from < from ? known_from : from;
  thread->stack_to = joins && known_to > until ? known_to : until;
  return true;
}

__u64 ci_words_at(__u64 at, __u64 most, __u64 sp) {
  __u64 here = (PAGE - (at & (PAGE - 1))) / 8;
  if (likely(here >= most) || stack_reaches(sp, at + most * 8)) return most;
  return here;
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
    else if (size == 4)
      __builtin_memcpy(to, (const void*)from, 4);
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
