/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a Python frame says: its function, file and line, from the objects that hold them. They stay
 * as they are while the frame's thread is in our call, because the frame refers to its code. */
#include "cudabpf/python_text.h"

#include "python.h"

static struct cb_python_text text_of(const struct ci_python* python, __u64 object) {
  struct cb_python_text text = {0};
  if (!object || ci_word_at(object + CB_OBJECT_TYPE) != python->text_type) return text;
  __u32 state = *(const __u32*)(object + CB_TEXT_STATE);
  text.width = cb_text_width(state);
  if (!text.width) return text;
  text.characters = (const void*)(object + cb_text_begins(&python->at, state));
  text.length = ci_word_at(object + CB_OBJECT_SIZE);
  return text;
}

static bool line_of(const struct ci_python* python, struct ci_python_frame frame, __u32* line) {
  const __u16* in_code = python->at.in_code;
  __u64 table = ci_word_at(frame.code + in_code[CB_CODE_LINES]);
  if (!table || ci_word_at(table + CB_OBJECT_TYPE) != python->bytes_type) return false;
  __s64 at = (__s64)(frame.instruction - (frame.code + in_code[CB_CODE_INSTRUCTIONS]));
  __s64 all = (__s64)ci_word_at(frame.code + CB_OBJECT_SIZE) * CB_INSTRUCTION;
  if (at < -CB_INSTRUCTION || at >= all) return false;
  __u32 first = *(const __u32*)(frame.code + in_code[CB_CODE_FIRST_LINE]);
  *line = cb_python_line((const __u8*)(table + CB_BYTES_CONTENT),
                         ci_word_at(table + CB_OBJECT_SIZE), first, at);
  return true;
}

__u32 ci_describe_frame(const struct ci_python* python, struct ci_python_frame frame, __u8* to,
                        __u32 most, bool* cut, bool* sound) {
  *sound = ci_word_at(frame.code + CB_OBJECT_TYPE) == python->code_type;
  if (!*sound) return 0;
  const __u16* in_code = python->at.in_code;
  struct cb_python_text function =
                            text_of(python, ci_word_at(frame.code + in_code[CB_CODE_FUNCTION])),
                        file = text_of(python, ci_word_at(frame.code + in_code[CB_CODE_FILE]));
  struct cb_stack_frame described;
  *sound = function.width && file.width && line_of(python, frame, &described.line);
  if (!*sound) return 0;
  char texts[CB_FUNCTION_TEXT + CB_FILE_TEXT];
  bool is_cut = false;
  __u32 function_size = cb_put_python_text(texts, function, CB_FUNCTION_TEXT, &is_cut);
  __u32 size =
      function_size + cb_put_python_text(texts + function_size, file, CB_FILE_TEXT, &is_cut);
  if (sizeof(described) + ((size + 7) & ~7U) > most) return 0;
  described.function_size = (__u16)function_size;
  described.file_size = (__u16)(size - function_size);
  __builtin_memcpy(to, &described, sizeof(described));
  for (__u32 i = 0; i < size; i++) to[sizeof(described) + i] = (__u8)texts[i];
  while (size & 7) to[sizeof(described) + size++] = 0;
  *cut |= is_cut;
  return (__u32)sizeof(described) + size;
}
