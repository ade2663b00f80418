/* Interpreters that this machine does not have, or nobody: what a library finds of one by its
 * symbols. OTHER_PYTHON names the case. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

enum { WORDS = 128, SIZE = 512 };

PUBLIC unsigned long Py_Version;
PUBLIC uint64_t _PyRuntime[WORDS];
PUBLIC uint64_t PyCode_Type[64], PyUnicode_Type[64], PyBytes_Type[64];
static uint64_t none[8], interpreter[8], another[8];
static uint8_t state[SIZE], others[2][SIZE], codes[2][SIZE], frames[4][SIZE];
static uint8_t* thread = state;
static uint64_t* first = interpreter;

PUBLIC void* PyGILState_GetThisThreadState(void) { return thread; }
PUBLIC void* PyInterpreterState_Main(void) { return interpreter; }
PUBLIC void* PyInterpreterState_Head(void) { return first; }
PUBLIC int Py_IsFinalizing(void) { return 0; }
PUBLIC const char* Py_GetVersion(void) { return "3.10.99 (other)"; }

static void put(uint8_t* object, unsigned at, uint64_t value) { memcpy(object + at, &value, 8); }
static uint64_t at(const void* object) { return (uint64_t)(uintptr_t)object; }

/* An ASCII string, or bytes. */
static uint64_t text(const char* characters, const void* type) {
  uint64_t* object = calloc(1, 64 + strlen(characters));
  object[1] = at(type);
  object[2] = strlen(characters);
  object[4] = 1 << 2 | 1 << 5 | 1 << 6; /* kind, compact, ascii */
  memcpy((uint8_t*)object + (type == PyBytes_Type ? 32 : 40), characters, strlen(characters));
  return at(object);
}

/* 3.14, with offsets that no real one has. */
enum { CURRENT = 80, PREVIOUS = 16, EXECUTABLE = 24, INSTRUCTION = 64, OWNER = 75 };
enum { INTERPRETERS = 800, NEXT_INTERPRETER = 8, THREADS = 24, NEWER = 96, OLDER = 104, ID = 40 };
enum { FILE_NAME = 120, FUNCTION = 136, LINES = 144, FIRST = 76, INSTRUCTIONS = 256 };

static void publish(void) {
  memcpy(_PyRuntime, "xdebugpy", 8);
  _PyRuntime[1] = Py_Version;
  const uint64_t frame[] = {96, PREVIOUS, EXECUTABLE, INSTRUCTION, 0, OWNER};
  const uint64_t code[] = {SIZE, FILE_NAME, 0, FUNCTION, LINES, FIRST, 0, 0, 0, INSTRUCTIONS};
  const uint64_t listed[] = {SIZE, NEWER, OLDER, 0, CURRENT, 0, ID};
  _PyRuntime[5] = INTERPRETERS;
  _PyRuntime[8] = NEXT_INTERPRETER;
  _PyRuntime[9] = THREADS;
  memcpy(_PyRuntime + 22, listed, sizeof(listed));
  memcpy(_PyRuntime + 31, frame, sizeof(frame));
  memcpy(_PyRuntime + 39, code, sizeof(code));
}

static void make_code(uint8_t* code, const char* function, int line) {
  put(code, 8, at(PyCode_Type));
  put(code, 16, 4); /* instructions */
  put(code, FILE_NAME, text("/fourteen.py", PyUnicode_Type));
  put(code, FUNCTION, text(function, PyUnicode_Type));
  /* Two instructions of the first line, then two of the next. */
  put(code, LINES, text("\xd1\x01\xd9\x01", PyBytes_Type));
  memcpy(code + FIRST, &line, sizeof(line));
}

static void make_frame(int which, uint64_t executable, uint64_t instruction, uint8_t owner) {
  put(frames[which], EXECUTABLE, executable);
  put(frames[which], INSTRUCTION, instruction);
  put(frames[which], PREVIOUS, which < 3 ? at(frames[which + 1]) : 0);
  frames[which][OWNER] = owner;
}

/* As a tracer outside finds the thread's state, among those of two other threads. */
static void list_threads(const char* which) {
  uint8_t* listed[] = {others[0], state, others[1]};
  for (int i = 0; i < 3; i++) {
    put(listed[i], NEWER, i > 0 ? at(listed[i - 1]) : 0);
    put(listed[i], OLDER, i < 2 ? at(listed[i + 1]) : 0);
    put(listed[i], ID, i == 1 ? (uint64_t)getpid() : 1);
    put(listed[i], CURRENT, at(frames[0]));
  }
  _PyRuntime[INTERPRETERS / 8] = at(interpreter);
  interpreter[THREADS / 8] = at(listed[0]);
  if (strcmp(which, "several") == 0) interpreter[NEXT_INTERPRETER / 8] = at(another);
  if (strcmp(which, "looping") == 0) put(listed[2], OLDER, at(listed[0]));
  if (strcmp(which, "circling") == 0) put(listed[0], NEWER, at(listed[2]));
  if (strcmp(which, "nowhere") == 0) interpreter[THREADS / 8] = 16;
  if (strcmp(which, "twice") == 0) put(listed[2], ID, (uint64_t)getpid());
  if (strcmp(which, "endless") == 0) put(frames[3], PREVIOUS, at(frames[0]));
  if (strcmp(which, "lost") == 0) put(frames[2], PREVIOUS, 16);
}

static void free_nothing(void* object) { (void)object; }

__attribute__((constructor)) static void begin(void) {
  const char* which = getenv("OTHER_PYTHON");
  if (!which) which = "";
  Py_Version = strcmp(which, "newer") == 0 ? 0x030f00a1 : 0x030e00f0;
  PyCode_Type[6] = at((void*)free_nothing);
  publish();
  make_code(codes[0], "inner", 10);
  make_code(codes[1], "outer", 20);
  make_frame(0, at(codes[0]) | 1, at(codes[0]) + INSTRUCTIONS + 4, 0);
  make_frame(1, at(none), 0, 3);
  make_frame(2, at(codes[1]), at(codes[1]) + INSTRUCTIONS, 1);
  make_frame(3, at(none), 0, 4);
  list_threads(which);
  if (strcmp(which, "threaded") == 0) _PyRuntime[2] = 1;
  if (strcmp(which, "unpublished") == 0) _PyRuntime[0] = 0;
  if (strcmp(which, "wrong") == 0) _PyRuntime[32] = 4000;
  if (strcmp(which, "several") == 0) first = another;
  if (strcmp(which, "strange") == 0) put(codes[1], 8, at(none));
  if (strcmp(which, "unmapped") == 0) thread = (uint8_t*)16;
  if (strcmp(which, "idle") == 0) put(state, CURRENT, 0);
}
