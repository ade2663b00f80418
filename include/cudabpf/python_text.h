/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What CPython's objects say, once their bytes are there: lines and texts. */
#ifndef CUDABPF_PYTHON_TEXT_H
#define CUDABPF_PYTHON_TEXT_H

#include <stdbool.h>

#include "cudabpf/python_layout.h"

#ifdef __cplusplus
namespace cudabpf::abi {
#endif

/* ----- lines. CPython describes the table in Objects/locations.md: each entry begins with a byte
 * that has its highest bit set: a code, and how many units of instructions the entry is about. */

enum cb_line_code {
  CB_ONE_LINE = 10, /* this one and the next two: so many lines on */
  CB_NO_COLUMNS = 13,
  CB_LONG_LINE = 14,
  CB_NO_LINE = 15,
};

/* A number in parts of 6 bits, the lowest first; the lowest bit is the sign. */
static inline __s64 cb_signed_number(const __u8* at, const __u8* end) {
  __u64 value = 0;
  for (unsigned shift = 0; at < end && shift < 60; shift += 6, at++) {
    value |= (__u64)(*at & 0x3f) << shift;
    if (!(*at & 0x40)) break;
  }
  return value & 1 ? -(__s64)(value >> 1) : (__s64)(value >> 1);
}

/* The line of an instruction, which lies so many bytes behind the code's first one, by the code's
 * table of lines. 0: it has none. */
static inline __u32 cb_python_line(const __u8* table, __u64 size, __u32 first_line, __s64 at) {
  const __u8 *entry = table, *end = table + size;
  if (at < 0) return first_line; /* its first instruction has yet to come */
  __u64 line = first_line, behind = 0;
  while (entry < end) {
    unsigned code = *entry >> 3 & 15;
    behind += ((*entry & 7) + 1ULL) * CB_INSTRUCTION;
    if (code == CB_NO_COLUMNS || code == CB_LONG_LINE)
      line += (__u64)cb_signed_number(entry + 1, end);
    else if (code >= CB_ONE_LINE && code < CB_NO_COLUMNS)
      line += code - CB_ONE_LINE;
    if (behind > (__u64)at) return code == CB_NO_LINE ? 0 : (__u32)line;
    do entry++;
    while (entry < end && !(*entry & 0x80));
  }
  return 0;
}

/* ----- texts */

/* A string's characters. */
struct cb_python_text {
  const void* characters;
  __u64 length;
  __u8 width; /* bytes of each; 0: it is no string that is known */
};

/* How a string's characters lie in memory, by its state. Width 0: in no way that is known. */
static inline __u8 cb_text_width(__u32 state) {
  const __u32 compact = 1 << 5;
  __u8 kind = state >> 2 & 7;
  return (state & compact) && (kind == 1 || kind == 2 || kind == 4) ? kind : 0;
}
static inline __u16 cb_text_begins(const struct cb_python_layout* at, __u32 state) {
  const __u32 ascii = 1 << 6;
  return state & ascii ? at->ascii_size : at->compact_size;
}

static inline __u32 cb_character(const struct cb_python_text* text, __u64 i) {
  if (text->width == 1) return ((const __u8*)text->characters)[i];
  if (text->width == 2) return ((const __u16*)text->characters)[i];
  return ((const __u32*)text->characters)[i];
}

/* Writes it as UTF-8 of at most `most` bytes, without a NUL. Returns its size; sets `cut` if that
 * is not all of it. */
static inline __u32 cb_put_python_text(char* to, struct cb_python_text text, __u32 most,
                                       bool* cut) {
  static const __u8 FIRST[] = {0, 0, 0xc0, 0xe0, 0xf0};
  __u32 size = 0;
  for (__u64 i = 0; i < text.length; i++) {
    __u32 c = cb_character(&text, i);
    /* Python's names of files may hold bytes that are no UTF-8, as halves of pairs. */
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    __u32 bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (size + bytes > most) {
      *cut = true;
      break;
    }
    if (bytes == 1) {
      to[size++] = (char)c;
      continue;
    }
    to[size++] = (char)(FIRST[bytes] | c >> 6 * (bytes - 1));
    for (__u32 left = bytes - 1; left; left--)
      to[size++] = (char)(0x80 | (c >> 6 * (left - 1) & 0x3f));
  }
  return size;
}

#ifdef __cplusplus
}  // namespace cudabpf::abi
#endif
#endif
