/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a process comes to be traced: libcuda loads this library in cuInit, the library asks cudabpf
 * what to record, and patches libcuda. A child of fork asks at its first call. If the program was
 * not started by a cudabpf, the library starts one (reader.c).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "taping.h"

OLD_VERSION(dlopen);
OLD_VERSION(dlsym);

#define PATIENCE_S 5 /* how long the program waits for cudabpf's answer, once per process */

static struct ci_process no_process = {.state = CI_OFF}; /* until we have memory of our own */
struct ci_process* ci_process = &no_process;

static __u32 generations;  /* a child continues its parent's count */
static char listener[108]; /* the environment may have changed when a child asks */
static struct ci_gpu_wish of_gpus;
static bool python_wanted;
static __u32 starter; /* the process that has started the cudabpf behind the listener, or 0 */

static __u32 own(long number) { return (__u32)ci_system(number, 0, 0, 0, 0, 0, 0); }

/* ----- one at a time. The lock is in memory that a child finds empty: the thread that held it does
 * not exist there. */

static bool lock(void) {
  __u32 tid = own(SYS_gettid);
  for (;;) {
    __u32 owner = 0;
    if (__atomic_compare_exchange_n(&ci_process->lock, &owner, tid, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return true;
    if (owner == tid) return false; /* a signal's handler */
    ci_system(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
  }
}

static void unlock(void) { __atomic_store_n(&ci_process->lock, 0, __ATOMIC_RELEASE); }

/* ----- the exchange with cudabpf */

long ci_connect(unsigned patience_s) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  for (size_t i = 0; i < sizeof(listener); i++) address.sun_path[i] = listener[i];
  long fd = ci_system(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, 0, 0);
  if (fd < 0) return fd;
  struct timeval patience = {.tv_sec = patience_s};
  ci_system(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&patience, sizeof(patience), 0);
  ci_system(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (long)&patience, sizeof(patience), 0);
  if (ci_system(SYS_connect, fd, (long)&address, sizeof(address), 0, 0, 0) == 0) return fd;
  ci_system(SYS_close, fd, 0, 0, 0, 0, 0);
  return -1;
}

static bool send_message(long fd, const void* data, size_t size, long file) {
  struct iovec part = {(void*)data, size};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (file >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof(control.space);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    *(int*)CMSG_DATA(&control.header) = (int)file;
  }
  return ci_system(SYS_sendmsg, fd, (long)&message, MSG_NOSIGNAL, 0, 0, 0) == (long)size;
}

bool ci_send(long fd, const void* data, size_t size) { return send_message(fd, data, size, -1); }

#define MAX_FDS 3

/* How many descriptors came with the answer; -1: no answer came. */
static int receive_answer(long fd, struct ci_answer* answer, int fds[MAX_FDS]) {
  struct iovec part = {answer, sizeof(*answer)};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(MAX_FDS * sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control.space)};
  long got = ci_system(SYS_recvmsg, fd, (long)&message, MSG_CMSG_CLOEXEC, 0, 0, 0);
  int count = 0;
  for (struct cmsghdr* one = got < 0 ? NULL : CMSG_FIRSTHDR(&message); one;
       one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    size_t here = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here && count < MAX_FDS; i++) fds[count++] = ((int*)CMSG_DATA(one))[i];
  }
  bool whole = got == sizeof(*answer) && answer->version == CI_VERSION;
  if (whole && !(message.msg_flags & MSG_CTRUNC)) return count;
  while (count > 0) ci_system(SYS_close, fds[--count], 0, 0, 0, 0, 0);
  return -1;
}

/* Maps the shared memory in such a way that a child does not have it. Rings become accessible when
 * they are taken: a program that has all its memory locked, now or later, would have all of the
 * shared memory. */
static struct ci_shared* map_shared(int fd, __u64 size) {
  __u64 ring = size > CI_RINGS_AT ? (size - CI_RINGS_AT) / CI_RINGS : 0;
  if (ring < CI_LEAST_RING || (ring & (ring - 1))) return NULL;
  long at = ci_map_away(CI_AWAY_RINGS, size, PROT_NONE, MAP_SHARED, fd);
  if (at < 0 && at > -4096) return NULL;
  ci_system(SYS_munlock, at, (long)size, 0, 0, 0, 0);
  if (ci_system(SYS_madvise, at, (long)size, MADV_DONTFORK, 0, 0, 0) != 0 ||
      ci_system(SYS_mprotect, at, CI_RINGS_AT, PROT_READ | PROT_WRITE, 0, 0, 0) != 0) {
    ci_system(SYS_munmap, at, (long)size, 0, 0, 0, 0);
    return NULL;
  }
  ci_system(SYS_madvise, at, (long)size, MADV_DONTDUMP, 0, 0, 0);
  return (struct ci_shared*)at;
}

static void become(enum ci_state state) {
  __atomic_store_n(&ci_process->state, state, __ATOMIC_RELEASE);
}

/* The process has asked, and is not traced unless the answer said so. */
static void settle(void) {
  if (ci_state() == CI_UNKNOWN) become(CI_OFF);
}

static void enter_shared(struct ci_shared* shared, __u64 size) {
  ci_process->shared = shared;
  ci_process->ring_size = (size - CI_RINGS_AT) / CI_RINGS;
  ci_find_heap();
  ci_process->pid = own(SYS_getpid);
  ci_process->generation = ++generations;
  become(CI_TRACED);
}

/* What cudabpf wants to have recorded. */
struct wanted {
  const struct ci_site* sites;
  __u32 count;
};

static struct wanted map_sites(int fd, __u32 count) {
  struct wanted wanted = {NULL, 0};
  if (count > CI_MAX_SITES) return wanted;
  long at =
      ci_system(SYS_mmap, 0, (long)(count * sizeof(struct ci_site)), PROT_READ, MAP_PRIVATE, fd, 0);
  if (at < 0 && at > -4096) return wanted;
  wanted.sites = (const struct ci_site*)at;
  wanted.count = count;
  return wanted;
}

static void give_up(long fd) {
  struct ci_given_up said = {.version = CI_VERSION, .reason = CI_GIVEN_UP};
  ci_system(SYS_prctl, PR_GET_NAME, (long)said.comm, 0, 0, 0, 0);
  send_message(fd, &said, sizeof(said), -1);
}

/* Asks, and does what the answer says. */
static void ask(long fd, enum ci_reason reason, const struct ci_library* library, long file) {
  struct ci_hello hello = {.version = CI_VERSION,
                           .reason = reason,
                           .pid = own(SYS_getpid),
                           .tid = own(SYS_gettid),
                           .has_memory = ci_process->shared != NULL,
                           .library = library ? library->which : 0,
                           .late = library && library->late};
  struct ci_answer answer;
  int fds[MAX_FDS];
  if (!send_message(fd, &hello, sizeof(hello), file)) return give_up(fd);
  int count = receive_answer(fd, &answer, fds);
  if (count < 0) return give_up(fd);
  int next = 0;
  if (answer.traced && answer.memory_size && next < count && !ci_process->shared) {
    struct ci_shared* shared = map_shared(fds[next++], answer.memory_size);
    if (shared) enter_shared(shared, answer.memory_size);
    if (shared) of_gpus = (struct ci_gpu_wish){answer.gpu, answer.gpu_window, answer.gpu_period};
    python_wanted = answer.python;
  }
  ci_look_for_linker();
  if (python_wanted) ci_look_for_python();
  if (ci_process->shared && answer.tape_size && next < count && !ci_process->tape && library)
    ci_begin_taping(fds[next++], answer.tape_size, library->path);
  struct wanted wanted = {NULL, 0};
  if (ci_process->shared && answer.sites && next < count)
    wanted = map_sites(fds[next], answer.sites);
  struct ci_done done = {.version = CI_VERSION, .sites = wanted.count};
  if (library && wanted.count) {
    ci_patch(library, wanted.sites, wanted.count, done.outcomes);
    if (!library->which) ci_watch_imports(library);
    ci_system(SYS_munmap, (long)wanted.sites, (long)(wanted.count * sizeof(struct ci_site)), 0, 0,
              0, 0);
  }
  send_message(fd, &done, offsetof(struct ci_done, outcomes) + done.sites, -1);
  for (int i = 0; i < count; i++) ci_system(SYS_close, fds[i], 0, 0, 0, 0, 0);
}

/* Signals are blocked: those of a timer would restart the wait every time. */
static void meet(enum ci_reason reason, const struct ci_library* library) {
  long file = -1;
  if (library) {
    file = ci_system(SYS_openat, AT_FDCWD, (long)library->path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0) return;
  }
  __u64 signals = ci_block_signals();
  long fd = ci_connect(PATIENCE_S);
  if (fd >= 0) {
    ask(fd, reason, library, file);
    ci_system(SYS_close, fd, 0, 0, 0, 0, 0);
  }
  ci_restore_signals(signals);
  if (file >= 0) ci_system(SYS_close, file, 0, 0, 0, 0, 0);
}

/* Reports the libraries that are traced besides libcuda, as far as they are new here. */
static void meet_others(bool late) {
  struct ci_library found[CI_LIBRARIES];
  int count = ci_find_new_libraries(found);
  for (int i = 0; i < count; i++) {
    found[i].late = late;
    meet(CI_LOADED, &found[i]);
  }
}

void ci_look_for_libraries(void) {
  if (ci_state() != CI_TRACED || !ci_libraries_have_changed() || !lock()) return;
  if (python_wanted) ci_look_for_python();
  meet_others(true);
  unlock();
}

bool ci_process_is_traced(void) {
  enum ci_state state = ci_state();
  if (state != CI_UNKNOWN) return state == CI_TRACED;
  if (!lock()) return false;
  if (ci_state() == CI_UNKNOWN) {
    meet(CI_FORKED, NULL);
    settle();
  }
  unlock();
  return ci_state() == CI_TRACED;
}

/* ----- being loaded */

/* Memory that a child finds empty. */
static bool own_memory(void) {
  if (ci_process != &no_process) return true;
  void* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  if (madvise(memory, 4096, MADV_WIPEONFORK) != 0) { /* Linux before 4.14 */
    munmap(memory, 4096);
    return false;
  }
  ci_process = memory;
  return true;
}

int InitializeInjection(void);

/* Another library may have been set to be loaded here: it is loaded after ours. */
static void load_next(void) {
  static bool loaded;
  const char* path = getenv(CI_NEXT);
  if (!path || !*path || __atomic_exchange_n(&loaded, true, __ATOMIC_RELAXED)) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (initialize && initialize != InitializeInjection) initialize();
}

/* The cudabpf that has started the program, or one that is started for it. */
static bool find_listener(void) {
  const char* path = getenv(CI_LISTENER);
  if (path) {
    size_t length = 0;
    while (path[length]) length++;
    if (length >= sizeof(listener)) return false;
    for (size_t i = 0; i <= length; i++) listener[i] = path[i];
    return true;
  }
  struct ci_library library;
  if (!ci_library_at((__u64)&find_listener, &library) ||
      !ci_start_reader(library.path, listener, sizeof(listener)))
    return false;
  starter = own(SYS_getpid);
  return true;
}

static void begin(__u64 caller) {
  struct ci_library library;
  if (getauxval(AT_SECURE) || !own_memory() || !ci_library_at(caller, &library) || !lock()) return;
  /* A process that cudabpf does not want, or that has come too late, is left alone. */
  if (ci_state() != CI_OFF) {
    bool first = !listener[0];
    if (!first || find_listener()) {
      if (first) ci_watch_threads();
      meet(CI_LOADED, &library);
      if (ci_state() == CI_TRACED) meet_others(false);
    }
  }
  settle();
  unlock();
  if (of_gpus.of && ci_state() == CI_TRACED) ci_time_gpus(&of_gpus);
}

/* Only where a cudabpf was started before the program: one that is started for it is started by
 * its cuInit, or programs that only name their ranges would be traced, too. */
void ci_begin_early(void) {
  if (!getenv(CI_LISTENER) || getauxval(AT_SECURE) || !own_memory() || !lock()) return;
  if (ci_state() == CI_UNKNOWN && find_listener()) {
    ci_watch_threads();
    meet(CI_NAMES, NULL);
  }
  settle();
  unlock();
}

/* Called by libcuda, in cuInit. */
__attribute__((visibility("default"))) int InitializeInjection(void) {
  int kept = errno;
  begin((__u64)__builtin_return_address(0));
  load_next();
  errno = kept;
  return 1;
}

/* Called when the program ends by exit(), after all that it has registered to be called then. A
 * cudabpf that the program has started finishes the trace after the program, unless it cannot
 * outlive it. */
__attribute__((destructor)) static void leave(void) {
  if (!starter || starter != own(SYS_getpid) || !ci_process->shared || !ci_takes_reader_along())
    return;
  __u64 signals = ci_block_signals();
  long fd = ci_connect(PATIENCE_S);
  struct ci_hello hello = {.version = CI_VERSION,
                           .reason = CI_LEAVING,
                           .pid = starter,
                           .tid = own(SYS_gettid),
                           .has_memory = true};
  char nothing;
  if (fd >= 0 && send_message(fd, &hello, sizeof(hello), -1))
    ci_system(SYS_recvfrom, fd, (long)&nothing, sizeof(nothing), 0, 0, 0); /* until it is closed */
  if (fd >= 0) ci_system(SYS_close, fd, 0, 0, 0, 0, 0);
  ci_restore_signals(signals);
}

/* For users who can set only LD_PRELOAD: it means the same as CUDA_INJECTION64_PATH. Called by the
 * linker, before the program begins. */
__attribute__((constructor)) static void be_preloaded(int count, char** arguments,
                                                      char** environment) {
  (void)count, (void)arguments;
  struct ci_library own;
  const char* preloaded = getenv("LD_PRELOAD");
  if (!preloaded || getenv(CI_LISTENER) || getauxval(AT_SECURE)) return;
  if (!ci_library_at((__u64)&be_preloaded, &own)) return;
  const char* folder_ends = strrchr(own.path, '/');
  if (strstr(preloaded, folder_ends ? folder_ends : own.path))
    ci_ask_to_be_injected(environment, own.path);
}
