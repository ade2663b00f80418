/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* From a frame to the one that called it, by the call frame information of its code (.eh_frame, as
 * the LSB and DWARF 5, section 6.4, have it), on x86-64. The library inside a process and cudabpf
 * share it, so that they come to the same frame.
 *
 * The tables may be hostile: every byte is checked to be there, and nothing is followed for ever.
 * What is not as compilers for C and C++ make it (an expression, a signal's frame, a rule for the
 * return address that is not the usual one) is not followed: the answer is then that it is not
 * known.
 */
#ifndef CUDABPF_UNWIND_H
#define CUDABPF_UNWIND_H

#ifdef __cplusplus
#include <cstring>
#else
#include <stdbool.h>
#endif

#include <linux/types.h>

#ifdef __cplusplus
namespace cudabpf::unwind {
#endif

/* Memory that can be read, and the address of its first byte. */
struct cu_memory {
  const __u8* bytes;
  __u64 address, size;
};

struct cu_frame {
  __u64 ip, sp;
  __u64 bp;
  bool bp_known;
};

/* ----- reading. Past the end, everything is 0, and `bad` says so. */

struct cu_cursor {
  const struct cu_memory* memory;
  __u64 at, end; /* addresses */
  bool bad;
};

static inline __u64 cu_take(struct cu_cursor* from, unsigned size) {
  const struct cu_memory* memory = from->memory;
  __u64 offset = from->at - memory->address, value = 0;
  if (from->bad || from->end - from->at < size || from->at > from->end || offset > memory->size ||
      memory->size - offset < size) {
    from->bad = true;
    return 0;
  }
  __builtin_memcpy(&value, memory->bytes + offset, size);
  from->at += size;
  return value;
}

static inline __s64 cu_take_int(struct cu_cursor* from) { return (__s32)cu_take(from, 4); }

static inline __u64 cu_take_uleb(struct cu_cursor* from) {
  __u64 value = 0;
  for (unsigned shift = 0; shift < 63; shift += 7) {
    __u64 byte = cu_take(from, 1);
    value |= (byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
  from->bad = true;
  return 0;
}

static inline __s64 cu_take_sleb(struct cu_cursor* from) {
  __u64 value = 0;
  for (unsigned shift = 0; shift < 56; shift += 7) {
    __u64 byte = cu_take(from, 1);
    value |= (byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    if (byte & 0x40) value |= ~0ULL << (shift + 7);
    return (__s64)value;
  }
  from->bad = true;
  return 0;
}

static inline void cu_skip(struct cu_cursor* from, __u64 size) {
  if (from->bad || from->at > from->end || from->end - from->at < size)
    from->bad = true;
  else
    from->at += size;
}

/* ----- which entry is about an address: by the sorted table in .eh_frame_hdr */

#define CU_PCREL_INT 0x1b   /* DW_EH_PE_pcrel | sdata4 */
#define CU_DATAREL_INT 0x3b /* DW_EH_PE_datarel | sdata4 */
#define CU_UINT 0x03        /* DW_EH_PE_udata4 */
#define CU_MAX_ENTRY 65536  /* bytes: no compiler makes longer ones */

/* The address of the last entry that begins at or before `ip`; 0: there is none. */
static inline __u64 cu_find_entry(const struct cu_memory* tables, __u64 header, __u64 ip) {
  struct cu_cursor at = {tables, header, tables->address + tables->size, false};
  if (cu_take(&at, 1) != 1 || cu_take(&at, 1) != CU_PCREL_INT || cu_take(&at, 1) != CU_UINT ||
      cu_take(&at, 1) != CU_DATAREL_INT)
    return 0;
  cu_take(&at, 4); /* where .eh_frame is */
  __u64 low = 0, high = cu_take(&at, 4), table = at.at;
  while (low < high && !at.bad) {
    __u64 middle = low + (high - low) / 2;
    at.at = table + middle * 8;
    if (header + (__u64)cu_take_int(&at) <= ip)
      low = middle + 1;
    else
      high = middle;
  }
  if (at.bad || !low) return 0;
  at.at = table + (low - 1) * 8 + 4;
  __u64 entry = header + (__u64)cu_take_int(&at);
  return at.bad ? 0 : entry;
}

/* A CIE or FDE, behind its length. */
static inline struct cu_cursor cu_entry_at(const struct cu_memory* tables, __u64 address) {
  struct cu_cursor at = {tables, address, tables->address + tables->size, false};
  __u64 length = cu_take(&at, 4);
  if (!length || length > CU_MAX_ENTRY || at.end - at.at < length) at.bad = true;
  at.end = at.at + length;
  return at;
}

/* What a CIE says of the entries that share it. */
struct cu_common {
  struct cu_cursor program; /* its instructions */
  __u64 code_align;
  __s64 data_align;
  bool augmented; /* entries have augmentation data */
};

#define CU_RETURN 16 /* DWARF's numbers of registers */
#define CU_SP 7
#define CU_BP 6

static inline bool cu_read_common(const struct cu_memory* tables, __u64 address,
                                  struct cu_common* common) {
  struct cu_cursor at = cu_entry_at(tables, address);
  if (cu_take(&at, 4) != 0) return false;
  __u64 version = cu_take(&at, 1), letters = 0;
  if (version != 1 && version != 3) return false;
  for (unsigned i = 0; i < 8; i++) {
    __u64 letter = cu_take(&at, 1);
    if (!letter) break;
    letters |= letter << i * 8;
  }
  common->code_align = cu_take_uleb(&at);
  common->data_align = cu_take_sleb(&at);
  if ((version == 1 ? cu_take(&at, 1) : cu_take_uleb(&at)) != CU_RETURN) return false;
  common->augmented = (letters & 0xff) == 'z';
  if (!common->augmented) return false; /* an address is then of 8 bytes: nobody's default here */
  __u64 size = cu_take_uleb(&at);
  struct cu_cursor data = at;
  cu_skip(&at, size);
  bool relative = false;
  for (letters >>= 8; letters; letters >>= 8) {
    static const __u8 SIZES[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};
    __u64 encoding = cu_take(&data, 1);
    if ((letters & 0xff) == 'R')
      relative = encoding == CU_PCREL_INT;
    else if ((letters & 0xff) == 'P')
      cu_skip(&data, SIZES[encoding & 15]);
    else if ((letters & 0xff) != 'L')
      return false; /* 'S': a signal's frame */
  }
  common->program = at;
  return relative && !at.bad && !data.bad;
}

/* ----- the rules for one instruction of the code: where its frame begins, and where what its
 * caller had in registers has been put */

enum cu_rule { CU_SAME, CU_AT, CU_UNKNOWN };

struct cu_rules {
  __u64 base; /* the frame begins at this register */
  __s64 from; /* plus this; CU_UNKNOWN if `base` is CU_NO_BASE */
  enum cu_rule bp;
  __s64 bp_at; /* from the frame's beginning */
  bool return_at_top;
};
#define CU_NO_BASE (~0ULL)
#define CU_REMEMBERED 8

struct cu_run {
  const struct cu_common* common;
  struct cu_rules now, initial, kept[CU_REMEMBERED];
  unsigned depth;
  __u64 at; /* the address in the code that the rules are for */
};

/* The rule for a register changes. */
static inline void cu_set(struct cu_run* run, __u64 which, enum cu_rule rule, __s64 at) {
  if (which == CU_BP) {
    run->now.bp = rule;
    run->now.bp_at = at;
  }
  if (which == CU_RETURN) run->now.return_at_top = rule == CU_AT && at == -8;
  if (which == CU_SP && rule != CU_SAME) run->now.base = CU_NO_BASE;
}

static inline void cu_restore(struct cu_run* run, __u64 which) {
  if (which == CU_BP) {
    run->now.bp = run->initial.bp;
    run->now.bp_at = run->initial.bp_at;
  }
  if (which == CU_RETURN) run->now.return_at_top = run->initial.return_at_top;
}

static inline __s64 cu_scaled(const struct cu_run* run, __u64 offset) {
  return (__s64)(offset * (__u64)run->common->data_align);
}

static inline void cu_keep_or_go_back(struct cu_run* run, bool keep, struct cu_cursor* from) {
  if (keep ? run->depth == CU_REMEMBERED : run->depth == 0)
    from->bad = true;
  else if (keep)
    run->kept[run->depth++] = run->now;
  else
    run->now = run->kept[--run->depth];
}

/* Instructions about the register that they name. */
static inline void cu_do_register(struct cu_run* run, __u64 code, struct cu_cursor* from) {
  __u64 which = cu_take_uleb(from);
  switch (code) {
    case 0x05: /* offset_extended */
      cu_set(run, which, CU_AT, cu_scaled(run, cu_take_uleb(from)));
      break;
    case 0x11: /* offset_extended_sf */
      cu_set(run, which, CU_AT, cu_scaled(run, (__u64)cu_take_sleb(from)));
      break;
    case 0x06: /* restore_extended */
      cu_restore(run, which);
      break;
    case 0x08: /* same_value */
      cu_set(run, which, CU_SAME, 0);
      break;
    case 0x07: /* undefined */
      cu_set(run, which, CU_UNKNOWN, 0);
      break;
    case 0x09: /* register */
    case 0x14: /* val_offset */
    case 0x15: /* val_offset_sf */
      cu_take_uleb(from);
      cu_set(run, which, CU_UNKNOWN, 0);
      break;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
      cu_skip(from, cu_take_uleb(from));
      cu_set(run, which, CU_UNKNOWN, 0);
      break;
    default:
      from->bad = true;
  }
}

static inline void cu_do(struct cu_run* run, __u64 code, struct cu_cursor* from) {
  switch (code) {
    case 0x00: /* nop */
      break;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
    case 0x04:
      run->at += cu_take(from, code == 0x02 ? 1 : code == 0x03 ? 2 : 4) * run->common->code_align;
      break;
    case 0x0a: /* remember_state */
    case 0x0b: /* restore_state */
      cu_keep_or_go_back(run, code == 0x0a, from);
      break;
    case 0x0c: /* def_cfa */
      run->now.base = cu_take_uleb(from);
      run->now.from = (__s64)cu_take_uleb(from);
      break;
    case 0x12: /* def_cfa_sf */
      run->now.base = cu_take_uleb(from);
      run->now.from = cu_scaled(run, (__u64)cu_take_sleb(from));
      break;
    case 0x0d: /* def_cfa_register */
      run->now.base = cu_take_uleb(from);
      break;
    case 0x0e: /* def_cfa_offset */
      run->now.from = (__s64)cu_take_uleb(from);
      break;
    case 0x13: /* def_cfa_offset_sf */
      run->now.from = cu_scaled(run, (__u64)cu_take_sleb(from));
      break;
    case 0x0f: /* def_cfa_expression */
      cu_skip(from, cu_take_uleb(from));
      run->now.base = CU_NO_BASE;
      break;
    case 0x2e: /* GNU_args_size */
      cu_take_uleb(from);
      break;
    default:
      cu_do_register(run, code, from);
  }
}

/* Follows instructions up to those that are for code behind `ip`. False: they are not understood.
 */
static inline bool cu_execute(struct cu_run* run, struct cu_cursor from, __u64 ip) {
  while (from.at < from.end && !from.bad) {
    __u64 code = cu_take(&from, 1), operand = code & 0x3f;
    if (code >> 6 == 1) /* advance_loc */
      run->at += operand * run->common->code_align;
    else if (code >> 6 == 2) /* offset */
      cu_set(run, operand, CU_AT, cu_scaled(run, cu_take_uleb(&from)));
    else if (code >> 6 == 3) /* restore */
      cu_restore(run, operand);
    else
      cu_do(run, code, &from);
    if (run->at > ip) return !from.bad;
  }
  return !from.bad;
}

/* The rules for the instruction at `ip`, by the tables whose header is at this address. */
static inline bool cu_find_rules(const struct cu_memory* tables, __u64 header, __u64 ip,
                                 struct cu_rules* rules) {
  __u64 address = cu_find_entry(tables, header, ip);
  if (!address) return false;
  struct cu_cursor entry = cu_entry_at(tables, address);
  __u64 here = entry.at, back = cu_take(&entry, 4);
  struct cu_common common;
  if (entry.bad || !back || !cu_read_common(tables, here - back, &common)) return false;
  __u64 place = entry.at, begin = place + (__u64)cu_take_int(&entry), size = cu_take(&entry, 4);
  cu_skip(&entry, cu_take_uleb(&entry));
  if (entry.bad || ip - begin >= size) return false;
  struct cu_run run;
  __builtin_memset(&run, 0, sizeof(run));
  run.common = &common;
  run.now.base = CU_NO_BASE;
  run.at = begin;
  if (!cu_execute(&run, common.program, ~0ULL) || run.at != begin) return false;
  run.initial = run.now;
  if (!cu_execute(&run, entry, ip)) return false;
  *rules = run.now;
  return true;
}

/* ----- the step */

/* The frame that called this one, which stands at a call: its `ip` is where the call returns to.
 * `stack` is what lies at and above its `sp`. False: it is not known. */
static inline bool cu_step(const struct cu_memory* tables, __u64 header,
                           const struct cu_memory* stack, struct cu_frame* frame) {
  struct cu_rules rules;
  if (!frame->ip || !cu_find_rules(tables, header, frame->ip - 1, &rules)) return false;
  if (!rules.return_at_top || (rules.base != CU_SP && (rules.base != CU_BP || !frame->bp_known)))
    return false;
  __u64 top = (rules.base == CU_SP ? frame->sp : frame->bp) + (__u64)rules.from;
  if (top <= frame->sp || (top & 7)) return false;
  struct cu_cursor at = {stack, top - 8, stack->address + stack->size, false};
  if (at.at < frame->sp) return false;
  frame->ip = cu_take(&at, 8);
  if (at.bad) return false;
  if (rules.bp == CU_AT) {
    struct cu_cursor saved = {stack, top + (__u64)rules.bp_at, top - 8, false};
    bool inside = saved.at >= frame->sp && saved.at < top;
    frame->bp = cu_take(&saved, 8);
    frame->bp_known = inside && !saved.bad;
  }
  if (rules.bp == CU_UNKNOWN) frame->bp_known = false;
  frame->sp = top;
  return true;
}

#ifdef __cplusplus
}  // namespace cudabpf::unwind
#endif
#endif
