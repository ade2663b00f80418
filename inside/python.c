/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finds the Python interpreter that is in the process, and how its structs are laid out. CPython
 * publishes no layouts for 3.11 and 3.12: they are in its internal headers, and do not change
 * within a version. From 3.13 on they are at the start of _PyRuntime (struct _Py_DebugOffsets), but
 * what values mean is not, so only versions that are known are followed. */
#include "python.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/uio.h>

OLD_VERSION(dlsym);

#define OLDEST 0x030b
#define FIRST_WITH_OFFSETS 0x030d
#define NEWEST 0x030e

static const struct ci_python_layout of_3_11 = {
    .holder = 56,
    .current = 8,
    .in_frame = {[CI_FRAME_CODE] = 32,
                 [CI_FRAME_PREVIOUS] = 48,
                 [CI_FRAME_INSTRUCTION] = 56,
                 [CI_FRAME_OWNER] = 69},
    .in_code = {[CI_CODE_FILE] = 112,
                [CI_CODE_FUNCTION] = 128,
                [CI_CODE_LINES] = 136,
                [CI_CODE_FIRST_LINE] = 72,
                [CI_CODE_INSTRUCTIONS] = 184},
    .ascii_size = 48,
    .compact_size = 72,
    .owners = CI_NO_OWNERS,
};
static const struct ci_python_layout of_3_12 = {
    .holder = 56,
    .current = 0,
    .in_frame = {[CI_FRAME_CODE] = 0,
                 [CI_FRAME_PREVIOUS] = 8,
                 [CI_FRAME_INSTRUCTION] = 56,
                 [CI_FRAME_OWNER] = 70},
    .in_code = {[CI_CODE_FILE] = 112,
                [CI_CODE_FUNCTION] = 128,
                [CI_CODE_LINES] = 136,
                [CI_CODE_FIRST_LINE] = 68,
                [CI_CODE_INSTRUCTIONS] = 192},
    .ascii_size = 40,
    .compact_size = 56,
    .owners = 3, /* FRAME_OWNED_BY_CSTACK */
};

/* ----- what 3.13 and 3.14 publish: words, of which the first is a cookie */

#define COOKIE 0x7970677562656478ULL /* "xdebugpy" */
#define VERSION_AT 1
#define FREE_THREADED_AT 2

/* Where these are, in words from the cookie on: an offset, and two structs of them. */
struct published {
  __u8 current, frame, code;
};
static const struct published in_3_13 = {23, 28, 34}, in_3_14 = {26, 31, 39};
/* In each, the first word is the struct's size. */
enum { PREVIOUS = 1, EXECUTABLE, INSTRUCTION, OWNER = 5 };
enum { FILE_NAME = 1, QUALIFIED_NAME = 3, LINE_TABLE, FIRST_LINE, INSTRUCTIONS = 9 };

static bool take_published(struct ci_python_layout* at, const __u64* words, __u16 version) {
  struct published place = version == FIRST_WITH_OFFSETS ? in_3_13 : in_3_14;
  const __u64 *frame = words + place.frame, *code = words + place.code;
  const __u64 most = 4096;
  __u64 of_frame[] = {frame[EXECUTABLE], frame[PREVIOUS], frame[INSTRUCTION], frame[OWNER]};
  __u64 of_code[] = {code[FILE_NAME], code[QUALIFIED_NAME], code[LINE_TABLE], code[FIRST_LINE],
                     code[INSTRUCTIONS]};
  if (words[place.current] >= most || frame[0] > most || code[0] > most) return false;
  *at = (struct ci_python_layout){
      .current = (__u16)words[place.current], .ascii_size = 40, .compact_size = 56, .owners = 3};
  for (unsigned i = 0; i < 4; i++) {
    if (of_frame[i] >= frame[0]) return false;
    at->in_frame[i] = (__u16)of_frame[i];
  }
  for (unsigned i = 0; i < 5; i++) {
    if (of_code[i] > code[0]) return false;
    at->in_code[i] = (__u16)of_code[i];
  }
  return true;
}

/* ----- finding it */

static void put_version(char to[16], __u64 version) {
  unsigned parts[] = {version >> 24 & 0xff, version >> 16 & 0xff, version >> 8 & 0xff};
  for (unsigned i = 0; i < 3; i++) {
    if (i) *to++ = '.';
    if (parts[i] >= 100) *to++ = (char)('0' + parts[i] / 100);
    if (parts[i] >= 10) *to++ = (char)('0' + parts[i] / 10 % 10);
    *to++ = (char)('0' + parts[i] % 10);
  }
  *to = 0;
}

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
    return "its version is older than 3.11";
  }
  put_version(python->version, *hexadecimal);
  __u16 version = (__u16)(*hexadecimal >> 16);
  if (version > NEWEST) return "its version is newer than 3.14";
  if (version < OLDEST) return "its version is older than 3.11";
  if (!runtime || !find_functions(python)) return "it does not export what its frames are found by";
  if (version < FIRST_WITH_OFFSETS) {
    python->at = version == OLDEST ? of_3_11 : of_3_12;
    return NULL;
  }
  if (runtime[0] != COOKIE || runtime[VERSION_AT] != *hexadecimal)
    return "it does not say where its frames are";
  if (runtime[FREE_THREADED_AT]) return "it is built without a global lock (free-threaded)";
  if (!take_published(&python->at, runtime, version)) return "what it says of its frames is wrong";
  return NULL;
}

/* ----- the first look */

static bool read_word(__u64 at, __u64* word) {
  struct iovec here = {word, 8}, there = {(void*)at, 8};
  return ci_system(SYS_process_vm_readv, ci_process->pid, (long)&here, 1, (long)&there, 1, 0) == 8;
}

static bool is_of_type(__u64 object, __u64 type) {
  const __u64 type_at = 8;
  __u64 its;
  return object && read_word(object + type_at, &its) && its == type;
}

static bool code_is_sound(const struct ci_python* python, __u64 code) {
  __u64 file, function, lines;
  return is_of_type(code, python->code_type) &&
         read_word(code + python->at.in_code[CI_CODE_FILE], &file) &&
         read_word(code + python->at.in_code[CI_CODE_FUNCTION], &function) &&
         read_word(code + python->at.in_code[CI_CODE_LINES], &lines) &&
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
    __u64 code, owner, at = frame + in_frame[CI_FRAME_OWNER];
    if (!read_word(frame + in_frame[CI_FRAME_CODE], &code) || !read_word(at & ~7ULL, &owner))
      return CI_FRAMES_WRONG;
    bool is_python = (owner >> 8 * (at & 7) & 0xff) < python->at.owners;
    if (is_python && !code_is_sound(python, code & ~CI_CODE_TAG)) return CI_FRAMES_WRONG;
    if (!read_word(frame + in_frame[CI_FRAME_PREVIOUS], &frame)) return CI_FRAMES_WRONG;
  }
  return CI_FRAMES_SOUND;
}
