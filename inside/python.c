/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finds the Python interpreter that is in the process. */
#include "python.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/uio.h>

OLD_VERSION(dlsym);

#define FIND(type, name) ((type)dlsym(NULL /* RTLD_DEFAULT */, name))

static bool find_functions(struct ci_python* python) {
  python->thread_state = FIND(__u64(*)(void), "PyGILState_GetThisThreadState");
  python->main_interpreter = FIND(__u64(*)(void), "PyInterpreterState_Main");
  python->first_interpreter = FIND(__u64(*)(void), "PyInterpreterState_Head");
  python->is_finalizing = FIND(int (*)(void), "Py_IsFinalizing");
  if (!python->is_finalizing) python->is_finalizing = FIND(int (*)(void), "_Py_IsFinalizing");
  python->code_type = FIND(__u64, "PyCode_Type");
  python->text_type = FIND(__u64, "PyUnicode_Type");
  python->bytes_type = FIND(__u64, "PyBytes_Type");
  return python->thread_state && python->main_interpreter && python->first_interpreter &&
         python->is_finalizing && python->code_type && python->text_type && python->bytes_type;
}

bool ci_python_is_loaded(void) { return FIND(void*, "PyGILState_GetThisThreadState") != NULL; }

/* Versions before 3.11 say theirs only as a text: "3.10.2 (main, ...". */
static void copy_version(char to[16]) {
  const char* (*says)(void) = FIND(const char* (*)(void), "Py_GetVersion");
  const char* text = says ? says() : "";
  unsigned size = 0;
  for (; text[size] && text[size] != ' ' && size < 15; size++) to[size] = text[size];
  to[size] = 0;
}

const char* ci_find_python(struct ci_python* python) {
  const unsigned long* hexadecimal = FIND(const unsigned long*, "Py_Version");
  const __u64* runtime = FIND(const __u64*, "_PyRuntime");
  if (!hexadecimal) {
    copy_version(python->version);
    return CB_PYTHON_TOO_OLD;
  }
  cb_put_python_version(python->version, *hexadecimal);
  const char* unknown = cb_python_unknown(*hexadecimal);
  if (unknown) return unknown;
  if (!runtime || !find_functions(python)) return CB_PYTHON_EXPORTS_NOTHING;
  return cb_python_layout_of(&python->at, *hexadecimal, runtime);
}

/* ----- the first look */

static bool read_word(__u64 at, __u64* word) {
  struct iovec here = {word, 8}, there = {(void*)at, 8};
  return ci_system(SYS_process_vm_readv, ci_process->pid, (long)&here, 1, (long)&there, 1, 0) == 8;
}

static bool is_of_type(__u64 object, __u64 type) {
  __u64 its;
  return object && read_word(object + CB_OBJECT_TYPE, &its) && its == type;
}

static bool code_is_sound(const struct ci_python* python, __u64 code) {
  __u64 file, function, lines;
  return is_of_type(code, python->code_type) &&
         read_word(code + python->at.in_code[CB_CODE_FILE], &file) &&
         read_word(code + python->at.in_code[CB_CODE_FUNCTION], &function) &&
         read_word(code + python->at.in_code[CB_CODE_LINES], &lines) &&
         is_of_type(file, python->text_type) && is_of_type(function, python->text_type) &&
         is_of_type(lines, python->bytes_type);
}

enum ci_frames ci_look_at_frames(const struct ci_python* python, __u64 state) {
  const __u16* in_frame = python->at.in_frame;
  __u64 frame;
  if (python->at.holder && !read_word(state + python->at.holder, &state)) return CI_FRAMES_WRONG;
  if (!state) return CI_NO_FRAMES;
  if (!read_word(state + python->at.current, &frame)) return CI_FRAMES_WRONG;
  if (!frame) return CI_NO_FRAMES;
  for (unsigned i = 0; frame && i < CB_STACK_FRAMES; i++) {
    __u64 code, owner, at = frame + in_frame[CB_FRAME_OWNER];
    if (!read_word(frame + in_frame[CB_FRAME_CODE], &code) || !read_word(at & ~7ULL, &owner))
      return CI_FRAMES_WRONG;
    bool is_python = (owner >> 8 * (at & 7) & 0xff) < python->at.owners;
    if (is_python && !code_is_sound(python, code & ~CB_CODE_TAG)) return CI_FRAMES_WRONG;
    if (!read_word(frame + in_frame[CB_FRAME_PREVIOUS], &frame)) return CI_FRAMES_WRONG;
  }
  return CI_FRAMES_SOUND;
}
