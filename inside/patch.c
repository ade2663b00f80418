/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Writes the jumps into a library's functions, and what they jump to.
 *
 * For each function there is a block near the library: a stub, which undoes the function's first
 * instruction and goes to ci_call, and a copy of its first instructions, which is how the function
 * is called from there. A block is complete before the jump to it is written, by a single store, so
 * that a thread that comes along finds the old code or the new.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inside.h"

#define BLOCK 64
#define COPY_AT 24 /* in the block, behind the stub */
CB_STATIC_ASSERT(COPY_AT + CI_MAX_CODE + CI_JUMP <= BLOCK, "a copy, and the jump behind it");
#define PAGE 4096ULL

static __u64 up_to_page(__u64 size) { return (size + PAGE - 1) & ~(PAGE - 1); }

static __u8* put(__u8* at, const void* bytes, size_t size) {
  __builtin_memcpy(at, bytes, size);
  return at + size;
}
static __u8* put32(__u8* at, __s64 value) {
  __s32 narrow = (__s32)value;
  return put(at, &narrow, sizeof(narrow));
}

static bool fits32(__s64 value) { return value == (__s32)value; }

/* Where the file's offset lies in memory; 0: nowhere that is executed. */
static __u64 address_of(const struct ci_library* library, __u64 offset, __u64 size) {
  for (int i = 0; i < library->count; i++) {
    const struct ci_segment* segment = &library->segments[i];
    if (offset >= segment->offset && offset - segment->offset < segment->size &&
        segment->size - (offset - segment->offset) >= size)
      return segment->address + (offset - segment->offset);
  }
  return 0;
}

static void* function_at(const struct ci_library* library, __u64 offset) {
  return offset ? (void*)address_of(library, offset, CI_MAX_CODE) : NULL;
}

/* Displacements one behind the other, all of them in the copy. */
static bool fixes_are_sound(const struct ci_site* site) {
  unsigned from = 1;
  for (int i = 0; i < CI_MAX_FIXED; i++) {
    unsigned at = site->fix_at[i];
    if (at && (at < from || at + 4 > site->copied)) return false;
    from = at ? at + 4 : CI_MAX_CODE; /* none may follow a 0 */
  }
  return true;
}

/* The store writes all of the jump, and not the first byte, where a uprobe may be; and no thread
 * sees a part of it. */
static bool store_is_sound(const struct ci_site* site, __u64 code) {
  return site->stored >= 1 && site->stored <= site->kept &&
         site->stored + CI_STORE >= site->kept + CI_JUMP &&
         ((code + site->stored) & (CI_STORE_LINE - 1)) + CI_STORE <= CI_STORE_LINE;
}

/* A row writes into its record, whatever it reads. */
static bool reads_are_sound(const struct ci_site* site) {
  for (int i = 0; i < CB_MAX_READS; i++) {
    const struct cb_read* read = &site->reads[i];
    bool is_array = read->kind == CB_READ_LIST;
    bool at_return = read->kind == CB_READ_RETURN || read->kind == CB_READ_ONLY || is_array;
    bool by_returned = read->base >= CB_RETURNED && read->base < CB_RETURNED + CB_MAX_RETURNED;
    if (!cb_read_fits(read) || read->count >= CB_ENTRY_WORDS) return false;
    if (read->base >= CB_ENTRY_WORDS && !(at_return && by_returned)) return false;
    if (is_array && (i || read->base >= CB_MAX_ARGS || read->count >= CB_MAX_ARGS)) return false;
    if (read->kind == CB_READ_RETURN && read->size > 8) return false;
    if (read->kind && !at_return && read->to < site->plan.nargs) return false;
  }
  return true;
}

static bool is_sound(const struct ci_site* site, __u64 code) {
  return site->kept && site->moved >= site->kept + CI_JUMP &&
         site->kept + CI_STORE <= CI_MAX_CODE && site->moved <= CI_MAX_CODE &&
         site->copied >= site->kept && site->copied <= CI_MAX_CODE && fixes_are_sound(site) &&
         store_is_sound(site, code) && site->pushed >= 0 && site->plan.nargs <= CB_MAX_ARGS &&
         reads_are_sound(site) && site->above >= CI_USUAL_ABOVE && site->above <= CI_MAX_ABOVE;
}

/* Does memory hold what the file holds? A uprobe may be on the first byte. */
static bool is_as_in_file(const struct ci_site* site, const __u8* code) {
  if (code[0] != site->code[0] && code[0] != 0xcc) return false;
  for (unsigned i = 1; i < site->moved; i++)
    if (code[i] != site->code[i]) return false;
  return true;
}

/* Stub and copy for the function at `code`. False: some address is out of reach. */
static bool fill_block(const struct ci_library* library, __u8* block, struct ci_entry* entry,
                       const struct ci_site* site, __u8* code) {
  __u8* at = block;
  at = put(at, "\x48\x8d\xa4\x24", 4); /* lea pushed(%rsp), %rsp */
  at = put32(at, site->pushed);
  at = put(at, "\x49\xbb", 2); /* mov $entry, %r11 */
  at = put(at, &entry, sizeof(entry));
  put(at, "\x41\xff\x63\x08", 4); /* jmp *8(%r11): entry->common */

  __u8* copy = block + COPY_AT;
  at = put(copy, site->copy, site->copied);
  for (int i = 0; i < CI_MAX_FIXED && site->fix_at[i]; i++) {
    __s32 displacement;
    __builtin_memcpy(&displacement, copy + site->fix_at[i], sizeof(displacement));
    __s64 corrected = displacement + (code - copy);
    if (!fits32(corrected)) return false;
    put32(copy + site->fix_at[i], corrected);
  }
  __s64 back = code + site->moved - (at + CI_JUMP);
  if (!fits32(back)) return false;
  *at++ = 0xe9;
  put32(at, back);
  *entry = (struct ci_entry){.copy = copy,
                             .common = (void*)ci_call,
                             .plan = site->plan,
                             .launch = site->launch != 0,
                             .of_driver = site->of_driver != 0,
                             .looks = site->looks != 0,
                             .stack = site->stack,
                             .describes = site->describes != 0,
                             .code = code,
                             .stream_of = function_at(library, site->stream_of),
                             .math_of = function_at(library, site->math_of),
                             .above = (__u8)site->above,
                             .taped = site->taped};
  __builtin_memcpy(entry->reads, site->reads, sizeof(entry->reads));
  return fits32(block - (code + site->kept + CI_JUMP));
}

typedef __u64 __attribute__((aligned(1), may_alias)) u64_anywhere;

static void write_jump(__u8* code, const struct ci_site* site, const __u8* block) {
  __u8* at = code + site->stored;
  union {
    __u8 bytes[CI_STORE];
    __u64 whole;
  } store;
  __builtin_memcpy(store.bytes, at, sizeof(store));
  __u8* jump = store.bytes + (site->kept - site->stored);
  *jump = 0xe9;
  put32(jump + 1, block - (code + site->kept + CI_JUMP));
  *(volatile u64_anywhere*)at = store.whole;
}

/* Memory for blocks near the code, and for entries, which may be anywhere. */
struct area {
  __u8* blocks;
  struct ci_entry* entries;
  __u64 blocks_size;
};

static bool make_area(struct area* area, const struct ci_library* library, __u32 count) {
  __u64 from = ~0ULL, to = 0;
  for (int i = 0; i < library->count; i++) {
    const struct ci_segment* segment = &library->segments[i];
    if (segment->address < from) from = segment->address;
    if (segment->address + segment->size > to) to = segment->address + segment->size;
  }
  area->blocks_size = up_to_page((__u64)count * BLOCK);
  __u64 at = ci_find_gap(from, to, area->blocks_size);
  if (!at) return false;
  void* blocks = mmap((void*)at, area->blocks_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (blocks == MAP_FAILED) return false;
  __u64 size = up_to_page(count * sizeof(struct ci_entry));
  void* entries = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  /* A kernel without MAP_FIXED_NOREPLACE treats the address as a hint. */
  if (entries == MAP_FAILED || (__u64)blocks != at) {
    munmap(blocks, area->blocks_size);
    if (entries != MAP_FAILED) munmap(entries, size);
    return false;
  }
  area->blocks = blocks;
  area->entries = entries;
  return true;
}

/* Runs `change` with the code writable. False: it may not be. */
static bool protect(const struct ci_library* library, int protection) {
  for (int i = 0; i < library->count; i++) {
    const struct ci_segment* segment = &library->segments[i];
    __u64 from = segment->address & ~(PAGE - 1);
    __u64 size = up_to_page(segment->address + segment->size - from);
    if (mprotect((void*)from, size, protection) != 0) return false;
  }
  return true;
}

void ci_patch(const struct ci_library* library, const struct ci_site* sites, __u32 count,
              __u8* outcomes) {
  for (__u32 i = 0; i < count; i++) outcomes[i] = CI_REFUSED;
  /* A breakpoint that is set later would fall into a jump. */
  if (!count || ci_has_debugger()) return;
  struct area area;
  if (!make_area(&area, library, count)) {
    for (__u32 i = 0; i < count; i++) outcomes[i] = CI_TOO_FAR;
    return;
  }
  for (__u32 i = 0; i < count; i++) {
    __u8* code = (__u8*)address_of(library, sites[i].offset, CI_MAX_CODE);
    if (!code || !is_sound(&sites[i], (__u64)code) || !is_as_in_file(&sites[i], code))
      outcomes[i] = CI_DIFFERS;
    else
      outcomes[i] =
          fill_block(library, area.blocks + (__u64)i * BLOCK, &area.entries[i], &sites[i], code)
              ? CI_PATCHED
              : CI_TOO_FAR;
  }
  bool ready = mprotect(area.blocks, area.blocks_size, PROT_READ | PROT_EXEC) == 0;
  bool writable = ready && protect(library, PROT_READ | PROT_WRITE | PROT_EXEC);
  for (__u32 i = 0; i < count; i++) {
    if (outcomes[i] != CI_PATCHED) continue;
    __u8* code = (__u8*)address_of(library, sites[i].offset, CI_MAX_CODE);
    if (writable)
      write_jump(code, &sites[i], area.blocks + (__u64)i * BLOCK);
    else
      outcomes[i] = CI_REFUSED;
  }
  protect(library, PROT_READ | PROT_EXEC);
  /* Other CPUs may have decoded the old instructions already. */
  ci_system(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0, 0, 0, 0);
  ci_system(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0, 0, 0, 0);
}
