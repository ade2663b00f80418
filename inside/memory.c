/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads memory that a call was given. Nothing says that it is mapped, so the kernel reads it, but
 * for two kinds: the thread's own stack above the call, once the kernel has found it mapped; and
 * the memory that brk() has given, which was found to be mapped as a whole, and of which libc gives
 * back only the end, where nothing is allocated. */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inside.h"

/* libc's own: where the memory ends that brk() has given. sbrk() could be the program's. */
extern void* __curbrk __attribute__((weak));

#define PAGE 4096ULL
#define STACK_PAGES 16       /* memory this far above the stack pointer is taken for the stack */
#define BRIDGED (256 * PAGE) /* the largest gap between two parts of one stack */

void ci_find_heap(void) {
  __u64 end = &__curbrk ? (__u64)__curbrk : 0;
  bool is_the_break = end && end == (__u64)ci_system(SYS_brk, 0, 0, 0, 0, 0, 0);
  ci_process->heap = is_the_break ? ci_heap_until(end) : 0;
}

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

static bool is_on_stack(__u64 from, __u64 size, __u64 sp) {
  return from >= sp && from - sp < STACK_PAGES * PAGE - CB_LONG_STRING &&
         stack_reaches(sp, from + size);
}

static bool is_on_heap(__u64 from, __u64 size) {
  if (!ci_process->heap || from < ci_process->heap) return false;
  __u64 end = (__u64)__atomic_load_n(&__curbrk, __ATOMIC_RELAXED);
  return from < end && end - from >= size;
}

static bool read_directly(const struct ci_part* part, __u64 sp) {
  if (!is_on_stack(part->from, part->size, sp) && !is_on_heap(part->from, part->size)) return false;
  if (part->size == 8) /* most are out-pointers */
    __builtin_memcpy(part->to, (const void*)part->from, 8);
  else if (part->size == 4)
    __builtin_memcpy(part->to, (const void*)part->from, 4);
  else
    copy(part->to, (const void*)part->from, part->size);
  return true;
}

bool ci_read(void* to, __u64 from, __u64 size, __u64 sp) {
  struct ci_part part = {to, from, size};
  return ci_read_parts(&part, 1, sp);
}

bool ci_read_parts(const struct ci_part* parts, unsigned count, __u64 sp) {
  struct iovec to[CB_MAX_READS], from[CB_MAX_READS];
  unsigned others = 0;
  long size = 0;
  for (unsigned i = 0; i < count; i++) {
    if (!parts[i].size || read_directly(&parts[i], sp)) continue;
    to[others] = (struct iovec){parts[i].to, parts[i].size};
    from[others++] = (struct iovec){(void*)parts[i].from, parts[i].size};
    size += (long)parts[i].size;
  }
  return !others || ci_system(SYS_process_vm_readv, ci_process->pid, (long)to, others, (long)from,
                              others, 0) == size;
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
