/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a Python frame says: its function, file and line, from the objects that hold them. They stay
 * as they are while the frame's thread is in our call, because the frame refers to its code. */
#include "python.h"

/* ----- lines. CPython describes the table in Objects/locations.md: each entry begins with a byte
 * that has its highest bit set: a code, and how many units of instructions the entry is about. */

#define UNIT 2 /* bytes of an instruction without arguments */

enum entry_code {
  ONE_LINE = 10, /* this one and the next two: so many lines on */
  NO_COLUMNS = 13,
  LONG = 14,
  NO_LINE = 15,
};

/* A number in parts of 6 bits, the lowest first; the lowest bit is the sign. */
static __s64 signed_number(const __u8* at, const __u8* end) {
  __u64 value = 0;
  for (unsigned shift = 0; at < end && shift < 60; shift += 6, at++) {
    value |= (__u64)(*at & 0x3f) << shift;
    if (!(*at & 0x40)) break;
  }
  return value & 1 ? -(__s64)(value >> 1) : (__s64)(value >> 1);
}

__u32 ci_python_line(const __u8* table, __u64 size, __u32 first_line, __s64 at) {
  const __u8 *entry = table, *end = table + size;
  if (at < 0) return first_line; /* its first instruction has yet to come */
  __u64 line = first_line, behind = 0;
  while (entry < end) {
    unsigned code = *entry >> 3 & 15;
    behind += ((*entry & 7) + 1ULL) * UNIT;
    if (code == NO_COLUMNS || code == LONG)
      line += (__u64)signed_number(entry + 1, end);
    else if (code >= ONE_LINE && code < NO_COLUMNS)
      line += code - ONE_LINE;
    if (behind > (__u64)at) return code == NO_LINE ? 0 : (__u32)line;
    do entry++;
    while (entry < end && !(*entry & 0x80));
  }
  return 0;
}

/* ----- texts */

static __u32 character(const struct ci_python_text* text, __u64 i) {
  if (text->width == 1) return ((const __u8*)text->characters)[i];
  if (text->width == 2) return ((const __u16*)text->characters)[i];
  return ((const __u32*)text->characters)[i];
}

__u32 ci_put_python_text(char* to, struct ci_python_text text, __u32 most, bool* cut) {
  static const __u8 FIRST[] = {0, 0, 0xc0, 0xe0, 0xf0};
  __u32 size = 0;
  for (__u64 i = 0; i < text.length; i++) {
    __u32 c = character(&text, i);
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

/* In all versions whose layout is known. */
#define TYPE_AT 8
#define SIZE_AT 16
#define STATE_AT 32
#define BYTES_AT 32

static struct ci_python_text text_of(const struct ci_python* python, __u64 object) {
  const unsigned compact = 1 << 5, ascii = 1 << 6;
  struct ci_python_text text = {0};
  if (!object || ci_word_at(object + TYPE_AT) != python->text_type) return text;
  __u32 state = *(const __u32*)(object + STATE_AT);
  __u8 kind = state >> 2 & 7;
  if (!(state & compact) || (kind != 1 && kind != 2 && kind != 4)) return text;
  text.characters =
      (const void*)(object + (state & ascii ? python->at.ascii_size : python->at.compact_size));
  text.length = ci_word_at(object + SIZE_AT);
  text.width = kind;
  return text;
}

static bool line_of(const struct ci_python* python, struct ci_python_frame frame, __u32* line) {
  const __u16* in_code = python->at.in_code;
  __u64 table = ci_word_at(frame.code + in_code[CI_CODE_LINES]);
  if (!table || ci_word_at(table + TYPE_AT) != python->bytes_type) return false;
  __s64 at = (__s64)(frame.instruction - (frame.code + in_code[CI_CODE_INSTRUCTIONS]));
  __s64 all = (__s64)ci_word_at(frame.code + SIZE_AT) * UNIT;
  if (at < -UNIT || at >= all) return false;
  __u32 first = *(const __u32*)(frame.code + in_code[CI_CODE_FIRST_LINE]);
  *line = ci_python_line((const __u8*)(table + BYTES_AT), ci_word_at(table + SIZE_AT), first, at);
  return true;
}

__u32 ci_describe_frame(const struct ci_python* python, struct ci_python_frame frame, __u8* to,
                        __u32 most, bool* cut, bool* sound) {
  *sound = ci_word_at(frame.code + TYPE_AT) == python->code_type;
  if (!*sound) return 0;
  const __u16* in_code = python->at.in_code;
  struct ci_python_text function =
                            text_of(python, ci_word_at(frame.code + in_code[CI_CODE_FUNCTION])),
                        file = text_of(python, ci_word_at(frame.code + in_code[CI_CODE_FILE]));
  struct cb_stack_frame described;
  *sound = function.width && file.width && line_of(python, frame, &described.line);
  if (!*sound) return 0;
  char texts[CB_FUNCTION_TEXT + CB_FILE_TEXT];
  bool is_cut = false;
  __u32 function_size = ci_put_python_text(texts, function, CB_FUNCTION_TEXT, &is_cut);
  __u32 size =
      function_size + ci_put_python_text(texts + function_size, file, CB_FILE_TEXT, &is_cut);
  if (sizeof(described) + ((size + 7) & ~7U) > most) return 0;
  described.function_size = (__u16)function_size;
  described.file_size = (__u16)(size - function_size);
  __builtin_memcpy(to, &described, sizeof(described));
  for (__u32 i = 0; i < size; i++) to[sizeof(described) + i] = (__u8)texts[i];
  while (size & 7) to[sizeof(described) + size++] = 0;
  *cut |= is_cut;
  return (__u32)sizeof(described) + size;
}
