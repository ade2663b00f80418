/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Starts the cudabpf that reads the records, where variables alone have brought the library into a
 * program. The program must not notice: it gets no child that its wait() could see, and no signal.
 * cudabpf in turn gets none of the program's files, and none of its settings of signals.
 *
 * For that, a helper is cloned that ends without a signal. The helper clones the process that
 * becomes cudabpf, and ends, so that init becomes cudabpf's parent. Where the program itself would
 * become the parent, the helper stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

#define PATIENCE_MS 10000 /* until cudabpf is ready */
#define MAX_PATH 4096
#define MAX_VARIABLES 4096
#define STACK (32 * 1024)

/* Where cudabpf is, seen from the library's folder: in a build, and where both are installed. */
static const char* const PLACES[] = {"/cudabpf", "/../../bin/cudabpf"};
#define PLACE_COUNT 2

struct reader {
  char programs[PLACE_COUNT][MAX_PATH];
  char pid[16];
  char* arguments[4];
  char* environment[MAX_VARIABLES + 1];
  int ready;         /* cudabpf writes the listener's path into this */
  bool helper_stays; /* as long as cudabpf, whose parent it is */
  __u8 helper_stack[STACK] __attribute__((aligned(16)));
  __u8 stack[STACK] __attribute__((aligned(16)));
};

static bool begins_with(const char* text, const char* beginning) {
  while (*beginning && *text == *beginning) text++, beginning++;
  return !*beginning;
}

static bool is(const char* text, const char* other) {
  while (*text && *text == *other) text++, other++;
  return *text == *other;
}

static size_t length_of(const char* text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}

static const char* value_of(char** environment, const char* name) {
  size_t length = length_of(name);
  for (; *environment; environment++)
    if (begins_with(*environment, name) && (*environment)[length] == '=')
      return *environment + length + 1;
  return NULL;
}

static bool append(char* to, size_t* at, const char* text) {
  size_t length = length_of(text);
  if (*at + length >= MAX_PATH) return false;
  for (size_t i = 0; i <= length; i++) to[*at + i] = text[i];
  *at += length;
  return true;
}

static void write_number(char* to, __u32 value) {
  char digits[16];
  int count = 0;
  do digits[count++] = (char)('0' + value % 10);
  while (value /= 10);
  while (count > 0) *to++ = digits[--count];
  *to = 0;
}

/* The real path of this library's file: the program may have given another. */
static bool own_path(const char* given, char path[MAX_PATH]) {
  long fd = ci_system(SYS_openat, AT_FDCWD, (long)given, O_PATH | O_CLOEXEC, 0, 0, 0);
  if (fd < 0) return false;
  char link[32] = "/proc/self/fd/";
  write_number(link + length_of(link), (__u32)fd);
  long length = ci_system(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, MAX_PATH - 1, 0, 0);
  ci_system(SYS_close, fd, 0, 0, 0, 0, 0);
  if (length <= 0) return false;
  path[length] = 0;
  return true;
}

static bool find_programs(struct reader* reader, const char* library) {
  char path[MAX_PATH];
  if (!own_path(library, path)) return false;
  size_t folder = length_of(path);
  while (folder && path[folder] != '/') folder--;
  path[folder] = 0;
  for (int i = 0; i < PLACE_COUNT; i++) {
    size_t at = 0;
    if (!append(reader->programs[i], &at, path) || !append(reader->programs[i], &at, PLACES[i]))
      return false;
  }
  return true;
}

/* The linker's variables are for the program: cudabpf must not preload what the program does, and
 * may need other libraries. A user who called sudo has called the program, not cudabpf. */
static void choose_environment(struct reader* reader) {
  int count = 0;
  for (char** one = environ; one && *one && count < MAX_VARIABLES; one++)
    if (!begins_with(*one, "LD_") && !begins_with(*one, "SUDO_"))
      reader->environment[count++] = *one;
  reader->environment[count] = NULL;
}

/* ----- in a process of its own, in the memory of the program, whose thread waits meanwhile */

static void forget_signals(void) {
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    __u64 mask;
  } by_default = {0};
  __u64 none = 0;
  for (int signal = 1; signal <= 64; signal++)
    ci_system(SYS_rt_sigaction, signal, (long)&by_default, 0, sizeof(by_default.mask), 0, 0);
  ci_system(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none), 0, 0);
}

static void close_from(long first) {
#ifdef SYS_close_range
  if (ci_system(SYS_close_range, first, ~0U, 0, 0, 0, 0) == 0) return;
#endif
  const long most = 65536;
  for (long fd = first; fd < most; fd++) ci_system(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* The program may have bound its thread to one processor, or given it a high priority. */
static void forget_priority(void) {
  struct {
    int priority;
  } ordinary = {0};
  unsigned long all[128];
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) all[i] = ~0UL;
  ci_system(SYS_sched_setscheduler, 0, SCHED_OTHER, (long)&ordinary, 0, 0, 0);
  ci_system(SYS_sched_setaffinity, 0, sizeof(all), (long)all, 0, 0, 0);
}

/* Only standard error stays open: until cudabpf is ready, it says there why it is not. */
static void forget_files(int ready) {
  if (ready == CI_READY_FD)
    ci_system(SYS_fcntl, ready, F_SETFD, 0, 0, 0, 0);
  else
    ci_system(SYS_dup3, ready, CI_READY_FD, 0, 0, 0, 0);
  long null = ci_system(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR | O_CLOEXEC, 0, 0, 0);
  for (int fd = 0; fd <= STDERR_FILENO; fd++)
    if (fd != STDERR_FILENO || ready == STDERR_FILENO) ci_system(SYS_dup3, null, fd, 0, 0, 0, 0);
  close_from(CI_READY_FD + 1);
}

/* The program's output is its own, but the user who set the variables waits for a trace. If the
 * output has no reader, the program must neither wait nor die. */
static void complain(const char* reason, const char* what) {
  struct pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT};
  struct timespec at_once = {0};
  if (ci_system(SYS_ppoll, (long)&error, 1, (long)&at_once, 0, 0, 0) != 1 ||
      error.revents != POLLOUT)
    return;
  const char* texts[] = {"cudabpf: error: this program's calls are not recorded: ", reason, what,
                         "\n"};
  struct iovec parts[4];
  for (int i = 0; i < 4; i++) parts[i] = (struct iovec){(void*)texts[i], length_of(texts[i])};
  ci_system(SYS_writev, STDERR_FILENO, (long)parts, 4, 0, 0, 0);
}

static int become_cudabpf(void* of) {
  struct reader* reader = of;
  ci_system(SYS_setsid, 0, 0, 0, 0, 0, 0);
  forget_signals();
  forget_priority();
  forget_files(reader->ready);
  for (int i = 0; i < PLACE_COUNT; i++)
    ci_system(SYS_execve, (long)reader->programs[i], (long)reader->arguments,
              (long)reader->environment, 0, 0, 0);
  complain("cannot start ", reader->programs[0]);
  ci_system(SYS_exit_group, 127, 0, 0, 0, 0, 0);
  return 0;
}

static int help(void* of) {
  struct reader* reader = of;
  long cudabpf = clone(become_cudabpf, reader->stack + STACK, CLONE_VM | CLONE_VFORK, reader);
  if (cudabpf < 0) complain("no process can be started", "");
  if (cudabpf >= 0 && reader->helper_stays) {
    /* It has copies of all descriptors of the program. */
    close_from(0);
    ci_system(SYS_setsid, 0, 0, 0, 0, 0, 0);
    ci_system(SYS_chdir, (long)"/", 0, 0, 0, 0, 0);
    ci_system(SYS_wait4, cudabpf, 0, __WALL, 0, 0, 0);
  }
  ci_system(SYS_exit_group, 0, 0, 0, 0, 0, 0);
  return 0;
}

/* ----- in the program */

/* Orphans become children of this process, and its wait() sees them: it is the first of a
 * container, or has requested that. */
static bool reaps_orphans(void) {
  int asked = 0;
  ci_system(SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)&asked, 0, 0, 0, 0);
  return asked || ci_system(SYS_getpid, 0, 0, 0, 0, 0, 0) == 1;
}

/* No handler of the program may run in the helper. */
static bool start(struct reader* reader) {
  __u64 signals = ci_block_signals();
  int until_exec = reader->helper_stays ? 0 : CLONE_VFORK;
  long helper = clone(help, reader->helper_stack + STACK, CLONE_VM | until_exec, reader);
  if (helper >= 0 && !reader->helper_stays) ci_system(SYS_wait4, helper, 0, __WCLONE, 0, 0, 0);
  ci_restore_signals(signals);
  return helper >= 0;
}

/* False: cudabpf has ended, and has reported why. */
static bool wait_until_ready(int fd, char* listener, size_t size) {
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  struct timespec patience = {.tv_sec = PATIENCE_MS / 1000};
  long ready;
  do ready = ci_system(SYS_ppoll, (long)&polled, 1, (long)&patience, 0, 0, 0); /* updates it */
  while (ready == -EINTR);
  if (ready == 0) complain("cudabpf was not ready within 10 s", "");
  if (ready <= 0) return false;
  long got = ci_system(SYS_read, fd, (long)listener, (long)size - 1, 0, 0, 0);
  if (got > 0) listener[got] = 0;
  return got > 0;
}

bool ci_start_reader(const char* library, char* listener, size_t size) {
  const size_t space = sizeof(struct reader);
  struct reader* reader =
      mmap(NULL, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reader == MAP_FAILED) return false;
  bool ready = false;
  int ends[2];
  if (find_programs(reader, library) &&
      ci_system(SYS_pipe2, (long)ends, O_CLOEXEC, 0, 0, 0, 0) == 0) {
    write_number(reader->pid, (__u32)ci_system(SYS_getpid, 0, 0, 0, 0, 0, 0));
    reader->arguments[0] = reader->programs[0];
    reader->arguments[1] = CI_READER;
    reader->arguments[2] = reader->pid;
    choose_environment(reader);
    reader->ready = ends[1];
    reader->helper_stays = reaps_orphans();
    bool started = start(reader);
    ci_system(SYS_close, ends[1], 0, 0, 0, 0, 0);
    if (!started) complain("no process can be started", "");
    ready = started && wait_until_ready(ends[0], listener, size);
    ci_system(SYS_close, ends[0], 0, 0, 0, 0, 0);
  }
  if (!reader->helper_stays) munmap(reader, space); /* its stack is in there */
  return ready;
}

/* The kernel ends a pid namespace with its first process: a container with the program, or right
 * after it. SLURM ends what a step has left behind. */
bool ci_takes_reader_along(void) {
  const char initial[] = "pid:[4026531836]"; /* the kernel's PROC_PID_INIT_INO */
  char name[sizeof(initial)];
  long size = ci_system(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)name,
                        sizeof(name), 0, 0);
  bool contained = size > 0;
  if (size == sizeof(initial) - 1) {
    name[size] = 0;
    contained = !is(name, initial);
  }
  return contained || (environ && value_of(environ, "SLURM_STEP_ID"));
}

/* ----- LD_PRELOAD: libcuda is made to load the library, as if by CUDA_INJECTION64_PATH */

static char* variable(char** free, const char* name, const char* value) {
  char* text = *free;
  for (; *name; name++) *(*free)++ = *name;
  *(*free)++ = '=';
  for (; *value; value++) *(*free)++ = *value;
  *(*free)++ = 0;
  return text;
}

/* By a new array: shells have functions of their own by the names of setenv and malloc. */
void ci_ask_to_be_injected(char** environment, const char* given) {
  char library[MAX_PATH];
  if (!own_path(given, library)) return;
  const char* before = value_of(environment, CI_INJECTION);
  if (before && is(before, library)) return;
  size_t count = 0;
  while (environment[count]) count++;
  size_t texts = sizeof(CI_INJECTION) + sizeof(CI_NEXT) + length_of(library) + 2;
  if (before) texts += length_of(before);
  size_t pointers = (count + 3) * sizeof(char*);
  char** array =
      mmap(NULL, pointers + texts, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (array == MAP_FAILED) return;
  char* free = (char*)array + pointers;
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (!begins_with(environment[i], CI_INJECTION "=") && !begins_with(environment[i], CI_NEXT "="))
      array[kept++] = environment[i];
  array[kept++] = variable(&free, CI_INJECTION, library);
  if (before && *before) array[kept++] = variable(&free, CI_NEXT, before);
  array[kept] = NULL;
  environ = array;
}
