/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records whose code made a call, by the addresses that it returns to. The linker's _dl_find_object
 * says without a lock which file has code at an address; a glibc without it (before 2.35) leaves
 * the holder unknown. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/syscall.h>

#include "cudabpf/caller.h"
#include "cudabpf/holders.h"
#include "recording.h"

OLD_VERSION(dlsym);

#define MAX_NAME 256

/* struct dl_find_object of glibc. */
struct found {
  __u64 flags;
  __u64 from, to; /* where all of the file's parts lie */
  const struct link_map* file;
  __u64 tables; /* .eh_frame_hdr */
  __u64 reserved[7];
};
static int (*find_object)(void*, struct found*);
static char program[MAX_NAME];

void ci_look_for_linker(void) {
  if (find_object) return;
  long size = ci_system(SYS_readlink, (long)"/proc/self/exe", (long)program, MAX_NAME - 1, 0, 0, 0);
  program[size > 0 ? size : 0] = 0;
  __atomic_store_n(&find_object,
                   (int (*)(void*, struct found*))dlsym(RTLD_DEFAULT, "_dl_find_object"),
                   __ATOMIC_RELEASE);
}

/* The part of the file in memory that has its tables: none if the file does not say. */
static struct cu_memory part_with_tables(const struct found* found) {
  const ElfW(Ehdr)* head = (const ElfW(Ehdr)*)found->from;
  struct cu_memory none = {0};
  if (!found->tables || found->to - found->from < 4096 ||
      __builtin_memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
      head->e_phentsize != sizeof(ElfW(Phdr)) || head->e_phoff > 4096 ||
      head->e_phoff + head->e_phnum * sizeof(ElfW(Phdr)) > 4096)
    return none;
  const ElfW(Phdr)* parts = (const ElfW(Phdr)*)(found->from + head->e_phoff);
  for (int i = 0; i < head->e_phnum; i++) {
    __u64 begin = found->file->l_addr + parts[i].p_vaddr;
    if (parts[i].p_type == PT_LOAD && (parts[i].p_flags & PF_R) &&
        found->tables - begin < parts[i].p_filesz)
      return (struct cu_memory){(const __u8*)begin, begin, parts[i].p_filesz};
  }
  return none;
}

/* The name of the holder's file; null: it is not known. */
static const char* holder_of(struct cu_frame at, const struct cu_memory* stack) {
  int (*find)(void*, struct found*) = __atomic_load_n(&find_object, __ATOMIC_ACQUIRE);
  for (unsigned i = 0; find && i < CU_MOST_FRAMES; i++) {
    struct found found;
    if (find((void*)(at.ip - 1), &found) != 0) return NULL;
    const char* file = cu_file_of(found.file->l_name);
    if (!*file) return cu_file_of(program);
    if (!cu_passes_on(file)) return file;
    struct cu_memory tables = part_with_tables(&found);
    if (!tables.size || !cu_step(&tables, found.tables, stack, &at)) return NULL;
  }
  return NULL;
}

/* ci_call has pushed rbp below the return address. */
void ci_record_holder(struct ci_thread* thread, const struct ci_frame* frame) {
  const __u64* sp = (const __u64*)frame->sp;
  struct cu_frame at = {.ip = sp[0], .sp = frame->sp + 8, .bp = sp[-1], .bp_known = true};
  struct cu_memory stack = {(const __u8*)at.sp, at.sp,
                            ci_words_at(at.sp, CB_CALLER_STACK / 8, frame->sp) * 8};
  const char* file = holder_of(at, &stack);
  struct cb_head* head = ci_reserve(thread, sizeof(*head) + MAX_NAME, CB_DROPPED_HOLDER);
  if (!head) return;
  char* to = (char*)(head + 1);
  __u32 size = 0;
  for (; file && size < MAX_NAME - 1 && file[size]; size++) to[size] = file[size];
  to[size++] = 0;
  ci_fill_head(head, thread, CB_HOLDER, ci_now());
  head->sp = (__u32)frame->sp;
  head->function = 0;
  head->nargs = head->struct_size = 0;
  head->string_size = (__u16)size;
  ci_commit(thread, (__u32)sizeof(*head) + size);
}
