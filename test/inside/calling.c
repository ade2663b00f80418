/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "calling.h"

#include <link.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

void calling_into(void* shared) {
  static __u32 generation;
  ci_watch_threads();
  ci_thread = (struct ci_thread){0}; /* nor is anything known of its stack */
  *ci_process = (struct ci_process){.state = CI_TRACED,
                                    .pid = (__u32)getpid(),
                                    .generation = ++generation,
                                    .shared = shared,
                                    .ring_size = CALLING_RING_SIZE};
  ci_find_heap();
}

void calling_unread_for(unsigned seconds) { ci_process->reads_at -= seconds; }

void calling_as_a_child(void) { memset(ci_process, 0, sizeof(*ci_process)); }

static bool call(struct ci_entry* entry, const uint64_t arguments[CALLING_WORDS], int32_t result) {
  /* The return address, and what lies above it. */
  __u64 stack[1 + CALLING_WORDS - CI_REGISTER_ARGS] = {0};
  memcpy(stack + 1, arguments + CI_REGISTER_ARGS, sizeof(stack) - sizeof(*stack));
  struct ci_frame frame = {.entry = entry, .sp = (__u64)stack};
  memcpy(frame.args, arguments, sizeof(frame.args));
  if (!ci_enter(&frame)) return false;
  frame.result = (__u32)result;
  ci_leave(&frame);
  return true;
}

bool calling(const void* plan, const void* reads, bool launch,
             const uint64_t arguments[CALLING_WORDS], int32_t result) {
  struct ci_entry entry = {.launch = launch, .above = CALLING_WORDS - CI_REGISTER_ARGS};
  memcpy(&entry.plan, plan, sizeof(entry.plan));
  if (reads) memcpy(entry.reads, reads, sizeof(entry.reads));
  return call(&entry, arguments, result);
}

bool calling_with_handle(const void* plan, uint64_t handle, const void* stream_of,
                         const void* math_of) {
  struct ci_entry entry = {.above = CALLING_WORDS - CI_REGISTER_ARGS,
                           .stream_of = (int (*)(__u64, __u64*))stream_of,
                           .math_of = (int (*)(__u64, __u32*))math_of};
  memcpy(&entry.plan, plan, sizeof(entry.plan));
  const uint64_t arguments[CALLING_WORDS] = {handle};
  return call(&entry, arguments, 0);
}

struct wanted {
  __u64 address;
  struct ci_library library;
};

static int look_at(struct dl_phdr_info* info, size_t size, void* of) {
  (void)size;
  struct wanted* wanted = of;
  bool here = false;
  struct ci_library library = {.path = info->dlpi_name, .base = info->dlpi_addr};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    __u64 address = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_DYNAMIC) library.dynamic = address;
    if (part->p_type == PT_GNU_RELRO) {
      library.sealed_from = address;
      library.sealed_to = address + part->p_memsz;
    }
    here |= part->p_type == PT_LOAD && wanted->address - address < part->p_memsz;
  }
  if (here) wanted->library = library;
  return here;
}

void calling_watches_imports(const void* address) {
  struct wanted wanted = {.address = (__u64)address};
  if (dl_iterate_phdr(look_at, &wanted)) ci_watch_imports(&wanted.library);
}
