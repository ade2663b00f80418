/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads what a call has beyond its argument words, by the rows of its plan. */
#ifndef CUDABPF_READS_H
#define CUDABPF_READS_H

#include "cudabpf/static_probes.h"
#include "emit.h"

/* Userspace writes a function's rows before it puts probes on it. */
struct cb_read reads[CB_READS];

/* Reads the traced program's memory. Pages that were never touched (a name in a library's read-only
 * data) are not resident: the quick read fails there, and only a sleepable program may fault them
 * in. The size must be a constant or come from at_most(): if the compiler spills half a register
 * for the second read, the verifier forgets its bound. */
static __always_inline long read_user(void* to, __u64 size, const void* from) {
  long error = bpf_probe_read_user(to, size, from);
  if (error && can_sleep) error = bpf_copy_from_user(to, size, from);
  return error;
}

static __always_inline long read_user_string(void* to, __u64 size, const char* from) {
  long length = bpf_probe_read_user_str(to, size, from);
  char touched;
  if (length < 0 && can_sleep && !bpf_copy_from_user(&touched, 1, from))
    length = bpf_probe_read_user_str(to, size, from);
  return length;
}

/* Keeps out-pointers between entry and return; launches have none. A small set-associative table: a
 * hash map's update and delete would cost more than the records. A call claims a slot with its key,
 * so it can never get another's pointers. If all ways are taken (threads killed in mid-call leave
 * theirs behind), the call goes without, and its return record says so. */
#define OUT_SETS 4096
#define OUT_WAYS 4
struct out_slot {
  __u64 key; /* 0: free */
  union {
    __u64 address[CB_MAX_RETURNED]; /* what is read for each word of the return's record */
    struct {
      __u64 from, size; /* in bytes */
    } array;
  };
};
static struct out_slot pending_outs[OUT_SETS][OUT_WAYS];

static __always_inline __u64 call_key(__u32 tid, __u32 sp) { return (__u64)tid << 32 | sp; }

static __always_inline struct out_slot* out_set(__u64 key) {
  return pending_outs[index_of(key * CB_HASH_FACTOR >> 52, OUT_SETS)];
}

static __always_inline struct out_slot* claim_outs(__u64 key) {
  struct out_slot* set = out_set(key);
  for (int way = 0; way < OUT_WAYS; way++) {
    struct out_slot* slot = &set[way];
    __u64 owner = slot->key;
    if (owner == key || (!owner && !__sync_val_compare_and_swap(&slot->key, 0, key))) return slot;
  }
  return 0;
}

static __always_inline struct out_slot* kept_outs(__u64 key) {
  struct out_slot* set = out_set(key);
  for (int way = 0; way < OUT_WAYS; way++)
    if (set[way].key == key) return &set[way];
  return 0;
}

struct rich_record {
  struct cb_head head;
  __u64 words[CB_ENTRY_WORDS]; /* arguments, then structs or a string */
};
CB_STATIC_ASSERT(CB_SHORT_STRING <= CB_MAX_STRUCT, "a string has a struct's place");

static __always_inline const struct cb_read* read_of(struct cb_plan plan, __u64 row) {
  return &reads[index_of(plan.reads + row, CB_READS)];
}

static __always_inline __u64 pointed_to(const struct cb_read* read, __u64 pointer) {
  return pointer ? pointer + read->offset : 0;
}

/* Where a row that is read at entry finds its memory. */
static __always_inline __u64 address_of(const struct rich_record* record,
                                        const struct cb_read* read) {
  return pointed_to(read, record->words[at_most(read->base, CB_ENTRY_WORDS - 1)]);
}

/* How many bytes an array has, as far as it is read, by the argument that counts its elements. */
static __always_inline __u64 size_of_list(const struct rich_record* record,
                                          const struct cb_read* read, __u64 element) {
  __u64 count = record->words[at_most(read->count, CB_ENTRY_WORDS - 1)];
  return cb_listed(count, read->size / element) * element;
}

/* Where the return's program finds what the rows from this one on read. Not static, so that the
 * verifier checks it once, and not with each way in which a slot may be found. */
__noinline int keep_returned(const struct rich_record* record, __u64 row, __u64 key) {
  struct out_slot* slot = record ? claim_outs(key) : 0;
  if (!slot) return 0;
  const struct cb_read* first = &reads[index_of(row, CB_READS)];
  if (first->kind == CB_READ_LIST) {
    slot->array.from = address_of(record, first);
    slot->array.size = slot->array.from ? size_of_list(record, first, sizeof(__u64)) : 0;
    return 0;
  }
  for (__u64 i = 0; i < CB_MAX_READS; i++) {
    const struct cb_read* read = &reads[index_of(row + i, CB_READS)];
    if (read->kind == CB_READ_NOTHING) break;
    if (read->kind == CB_READ_RETURN)
      slot->address[index_of(read->to, CB_MAX_RETURNED)] = address_of(record, read);
  }
  return 0;
}

/* Reads a struct or an array to where its row says; cb_read_fits() bounds it. Returns its size if
 * it could not be read, else 0. Not static, so that the verifier checks it once and not in every
 * turn of a loop; so it may not sleep. */
__noinline __u32 read_struct(struct rich_record* record, __u64 row) {
  if (!record) return 0;
  const struct cb_read* read = &reads[index_of(row, CB_READS)];
  __u64 size = read->size, to = read->to;
  if (read->kind == CB_READ_ARRAY) {
    __u64 words = record->words[at_most(read->count, CB_ENTRY_WORDS - 1)];
    if (words < size / 8) size = words * 8;
  }
  const void* from = (const void*)address_of(record, read);
  if (read->kind == CB_READ_INTS) size = from ? size_of_list(record, read, sizeof(__u32)) : 0;
  long error =
      to <= CB_PLAIN_ARGS
          ? bpf_probe_read_user(record->words + at_most(to, CB_PLAIN_ARGS),
                                at_most(size, CB_MAX_STRUCT), from)
          : bpf_probe_read_user(record->words + at_most(to, CB_ENTRY_WORDS - CB_SMALL_STRUCT / 8),
                                at_most(size, CB_SMALL_STRUCT), from);
  if (error) return size;
  record->head.struct_size = (to - record->head.nargs) * 8 + size;
  return 0;
}

/* Reads what the rows from this one on read at entry, but for a string. Returns 0 if that is all;
 * else the row at which it stopped, with READ_STOPS, and above that the size of what could not be
 * read: 0 for a string. Not static, for the same reason. */
#define READ_STOPS (1ULL << 31)
__noinline __u64 read_rows(struct rich_record* record, __u64 row) {
  if (!record) return 0;
  for (int i = 0; i < CB_MAX_READS; i++, row++) {
    __u32 kind = reads[index_of(row, CB_READS)].kind;
    if (kind == CB_READ_NOTHING) break;
    if (kind == CB_READ_STRING) return READ_STOPS | index_of(row, CB_READS);
    if (kind > CB_READ_INTS) continue;
    __u64 missing = read_struct(record, row);
    if (missing) return missing << 32 | READ_STOPS | index_of(row, CB_READS);
  }
  return 0;
}

__noinline __u64 address_of_row(const struct rich_record* record, __u64 row) {
  return record ? address_of(record, &reads[index_of(row, CB_READS)]) : 0;
}

/* Makes memory resident that is at most a page long. False: it cannot be, or there is none. */
static __always_inline bool fault_in(__u64 from, __u64 size) {
  char touched;
  return can_sleep && !bpf_copy_from_user(&touched, 1, (const void*)from) &&
         !bpf_copy_from_user(&touched, 1, (const void*)(from + size - 1));
}

static __always_inline __u64 register_of(struct pt_regs* ctx, __u64 word) {
  __u64 value = 0;
  bpf_probe_read_kernel(&value, sizeof(value), (void*)ctx + index_of(word, CB_REGISTERS) * 8);
  return value;
}

/* An argument of a USDT probe, where its row says. False: it cannot be read. */
static __always_inline bool read_placed(struct pt_regs* ctx, const struct cb_read* read,
                                        __u64* value) {
  *value = (__u64)(__s64)(__s32)((__u32)read->size << 16 | read->offset);
  if (read->kind != CB_READ_CONSTANT) *value = register_of(ctx, read->base);
  __u64 bytes = read->count & ~CB_SIGNED;
  if (read->kind == CB_READ_MEMORY) {
    __u64 from = *value + (__s64)(__s16)read->offset;
    if (read->size) from += register_of(ctx, (read->size & 0xff) - 1) << (read->size >> 8 & 3);
    *value = 0;
    if (read_user(value, at_most(bytes, sizeof(*value)), (const void*)from)) return false;
  }
  __u64 unused = 64 - at_most(bytes, sizeof(*value)) * 8;
  *value <<= unused & 63;
  *value =
      read->count & CB_SIGNED ? (__u64)((__s64)*value >> (unused & 63)) : *value >> (unused & 63);
  return true;
}

/* Reads what rows say at return, up to the first that fails. Returns how many words. */
static __always_inline __u64 read_returned(struct cb_plan plan, const struct out_slot* kept,
                                           __u64* words, __u8* flags) {
  __u64 count = 0;
  for (__u64 i = 0; i < CB_MAX_READS; i++) {
    const struct cb_read* read = read_of(plan, i);
    if (read->kind == CB_READ_NOTHING) break;
    __u64 base = words[index_of(read->base, CB_MAX_RETURNED)];
    if (read->kind == CB_READ_ONLY && (__u32)base != read->size) break;
    if (read->kind != CB_READ_RETURN) continue;
    __u64 to = index_of(read->to, CB_MAX_RETURNED);
    __u64 from = read->base < CB_RETURNED ? kept->address[to] : pointed_to(read, base);
    if (from && read_user(&words[to], at_most(read->size, sizeof(__u64)), (const void*)from)) {
      *flags |= CB_READ_FAULT;
      break;
    }
    count = to + 1;
  }
  return at_most(count, CB_MAX_RETURNED);
}

#endif
