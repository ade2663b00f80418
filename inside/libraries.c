/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which libraries the process has loaded: the one that has code at an address, and those that are
 * traced besides libcuda. No hook into the linker is needed for these: a library that calls the
 * driver calls some functions early, and each such call looks whether something has been loaded.
 */
#include <elf.h>
#include <link.h>

#include "inside.h"

static void describe(const struct dl_phdr_info* info, struct ci_library* library) {
  *library = (struct ci_library){.path = info->dlpi_name, .base = info->dlpi_addr};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    __u64 address = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_DYNAMIC) library->dynamic = address;
    if (part->p_type == PT_GNU_RELRO) {
      library->sealed_from = address;
      library->sealed_to = address + part->p_memsz;
    }
    if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && library->count < CI_MAX_SEGMENTS)
      library->segments[library->count++] =
          (struct ci_segment){part->p_offset, part->p_filesz, address};
  }
}

struct search {
  __u64 address;
  struct ci_library* library;
};

static int look_for_code(struct dl_phdr_info* info, size_t size, void* of) {
  (void)size;
  struct search* search = of;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) ||
        search->address - (info->dlpi_addr + part->p_vaddr) >= part->p_memsz)
      continue;
    describe(info, search->library);
    return 1;
  }
  return 0;
}

bool ci_library_at(__u64 address, struct ci_library* library) {
  struct search search = {address, library};
  return dl_iterate_phdr(look_for_code, &search) && library->path[0];
}

/* ----- libraries that are traced besides libcuda. All of this under the process's lock, but for a
 * look at the counter. */

static __u64 loads; /* how many objects had been loaded at the last search; 0: none was made */
/* The process that made it. In a child, a thread that exists no more may have locked the linker. */
static __u32 searched_by;
static struct {
  __u64 base;
  __u16 which;
  bool loaded;           /* at the last search */
} met[4 * CI_LIBRARIES]; /* a program may have several copies of one */
static int met_count;

/* The place in ci_libraries of the library that this path names; 0: it is not traced. */
static __u16 place_of(const char* path) {
  const struct ci_libraries* libraries =
      (const struct ci_libraries*)((const __u8*)ci_process->shared + CI_LIBRARIES_AT);
  const char* file = path;
  for (const char* at = path; *at; at++)
    if (*at == '/') file = at + 1;
  for (__u16 which = 1; which < CI_LIBRARIES; which++) {
    const char* name = libraries->names[which];
    int length = 0;
    while (length < CI_LIBRARY_NAME && name[length] && name[length] == file[length]) length++;
    if (length && length < CI_LIBRARY_NAME && !name[length] &&
        (!file[length] || file[length] == '.'))
      return which;
  }
  return 0;
}

static bool is_met(__u64 base, __u16 which) {
  for (int i = 0; i < met_count; i++)
    if (met[i].base == base && met[i].which == which) return met[i].loaded = true;
  return false;
}

/* What has been unloaded may come again, and is then new. */
static void forget_unloaded(void) {
  int kept = 0;
  for (int i = 0; i < met_count; i++)
    if (met[i].loaded) met[kept++] = met[i];
  met_count = kept;
}

struct found {
  struct ci_library* libraries;
  int count;
};

static int look_for_new(struct dl_phdr_info* info, size_t size, void* of) {
  struct found* found = of;
  if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
    __atomic_store_n(&loads, info->dlpi_adds, __ATOMIC_RELAXED);
  __u16 which = place_of(info->dlpi_name);
  if (!which || is_met(info->dlpi_addr, which) || found->count == CI_LIBRARIES ||
      met_count == sizeof(met) / sizeof(met[0]))
    return 0;
  met[met_count].base = info->dlpi_addr;
  met[met_count].loaded = true;
  met[met_count++].which = which;
  describe(info, &found->libraries[found->count]);
  found->libraries[found->count++].which = which;
  return 0;
}

int ci_find_new_libraries(struct ci_library found[CI_LIBRARIES]) {
  struct found all = {found, 0};
  searched_by = ci_process->pid;
  for (int i = 0; i < met_count; i++) met[i].loaded = false;
  dl_iterate_phdr(look_for_new, &all);
  forget_unloaded();
  return all.count;
}

static int count_loads(struct dl_phdr_info* info, size_t size, void* of) {
  if (size >= offsetof(struct dl_phdr_info, dlpi_subs)) *(__u64*)of = info->dlpi_adds;
  return 1; /* the first object has the count of all */
}

bool ci_libraries_have_changed(void) {
  __u64 now = 0;
  if (ci_process->pid != searched_by) return false;
  dl_iterate_phdr(count_loads, &now);
  return now != __atomic_load_n(&loads, __ATOMIC_RELAXED);
}
