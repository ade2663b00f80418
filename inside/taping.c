/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Keeps what calls were given, holds threads and stops one at a launch: include/cudabpf/taping.h.
 * All of it is off unless an iteration is to be captured.
 */
#include "taping.h"

#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

static __u64 tape_size;
static struct ci_stop stop;

void ci_begin_taping(int fd, __u64 size, const char* path) {
  if (size <= CI_PAYLOADS_AT) return;
  long at = ci_map_away(CI_AWAY_TAPE, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd);
  if (at < 0 && at > -4096) return;
  ci_system(SYS_munlock, at, (long)size, 0, 0, 0, 0);
  if (ci_system(SYS_madvise, at, (long)size, MADV_DONTFORK, 0, 0, 0) != 0) {
    ci_system(SYS_munmap, at, (long)size, 0, 0, 0, 0);
    return;
  }
  ci_system(SYS_madvise, at, (long)size, MADV_DONTDUMP, 0, 0, 0);
  ci_find_driver_functions(path);
  tape_size = size;
  struct ci_tape* tape = (struct ci_tape*)at;
  stop = (struct ci_stop){.after = tape->first_stop};
  __atomic_store_n(&ci_process->tape, tape, __ATOMIC_RELEASE);
}

/* ----- payloads */

__u64 ci_take(__u64 size, __u64 more) {
  struct ci_tape* tape = ci_tape();
  __u64 room = tape_size - CI_PAYLOADS_AT;
  if (size > room || more > room) goto full;
  __u64 needed = sizeof(struct ci_payload) + CI_PADDED(size) + CI_PADDED(more);
  __u64 at = __atomic_fetch_add(&tape->used, needed, __ATOMIC_RELAXED);
  if (at > room || needed > room - at) goto full;
  at += CI_PAYLOADS_AT;
  *ci_payload(at) = (struct ci_payload){.state = CI_PENDING, .size = size, .more = more};
  return at;
full:
  __atomic_fetch_add(&tape->lost, 1, __ATOMIC_RELAXED);
  return 0;
}

__u64 ci_keep_parts(const void* first, __u64 size, const void* second, __u64 more) {
  __u64 at = ci_take(size, more), sp = (__u64)__builtin_frame_address(0);
  if (!at) return 0;
  bool read = ci_read(ci_first_part(at), (__u64)first, size, sp) &&
              ci_read(ci_second_part(at), (__u64)second, more, sp);
  ci_finish(at, read ? CI_FILLED : CI_UNREADABLE);
  return at;
}

static __u64 word(const struct ci_frame* frame, unsigned number) {
  if (number == CI_NO_WORD) return 0;
  if (number < CI_REGISTER_ARGS) return frame->args[number];
  number -= CI_REGISTER_ARGS;
  return number < frame->above ? ((const __u64*)frame->sp)[1 + number] : 0;
}

/* ----- launches */

#define ATTRIBUTES_AT 40 /* in a CUlaunchConfig; their number follows */

static __u64 keep_launch(const struct ci_frame* frame, const struct ci_taped* taped) {
  struct ci_parameters parameters = {.kernel = word(frame, taped->at),
                                     .list = word(frame, taped->lists_at),
                                     .extra = word(frame, taped->extra_at)};
  __u64 sp = frame->sp;
  struct {
    __u64 at;
    __u32 count;
  } attributes = {0};
  bool readable = true;
  if (taped->to_at != CI_NO_WORD)
    readable = ci_read(&attributes, word(frame, taped->to_at) + ATTRIBUTES_AT, 12, sp) &&
               attributes.count <= CI_MAX_LAUNCH_ATTRIBUTES;
  if (!readable || !ci_find_parameters(&parameters, sp)) {
    __u64 at = ci_take(0, 0);
    if (at) ci_finish(at, CI_UNREADABLE);
    return at;
  }
  __u64 more = attributes.count * (__u64)CI_LAUNCH_ATTRIBUTE, at = ci_take(parameters.size, more);
  if (!at) return 0;
  readable = ci_read_parameters(ci_first_part(at), &parameters, sp) &&
             (!more || ci_read(ci_second_part(at), attributes.at, more, sp));
  ci_finish(at, readable ? CI_FILLED : CI_UNREADABLE);
  return at;
}

/* ----- code */

#define MAX_CODE (1ULL << 30)
#define WRAPPER 0x466243b1u
#define FAT_BINARY 0xba55ed50u
#define ELF 0x464c457fu

static __u64 size_of_elf(__u64 at, __u64 sp) {
  Elf64_Ehdr head;
  if (!ci_read(&head, at, sizeof(head), sp)) return 0;
  __u64 end = sizeof(head), sections = head.e_shoff + (__u64)head.e_shentsize * head.e_shnum;
  __u64 parts = head.e_phoff + (__u64)head.e_phentsize * head.e_phnum;
  if (head.e_shoff > MAX_CODE || head.e_phoff > MAX_CODE) return 0;
  if (sections > end) end = sections;
  if (parts > end) end = parts;
  if (head.e_shentsize != sizeof(Elf64_Shdr)) return end;
  for (unsigned i = 0; i < head.e_shnum; i++) {
    Elf64_Shdr section;
    if (!ci_read(&section, at + head.e_shoff + i * sizeof(section), sizeof(section), sp)) return 0;
    if (section.sh_type == SHT_NOBITS || section.sh_offset > MAX_CODE || section.sh_size > MAX_CODE)
      continue;
    if (section.sh_offset + section.sh_size > end) end = section.sh_offset + section.sh_size;
  }
  return end;
}

/* With its NUL. */
static __u64 size_of_text(__u64 at) {
  char part[4096];
  for (__u64 size = 0; size < MAX_CODE;) {
    __u32 here = ci_read_string(part, at + size, sizeof(part));
    if (!here) return 0;
    size += here;
    if (!part[here - 1]) return size;
  }
  return 0;
}

/* An image's address, behind a wrapper of it, and size; 0: it is none, or of an unknown kind. */
static __u64 find_code(__u64* at, __u64 sp) {
  struct {
    __u32 magic, version;
    __u64 data;
  } head;
  if (!ci_read(&head, *at, sizeof(head), sp)) return 0;
  if (head.magic == WRAPPER) {
    if (head.version != 1) return 0; /* several, to be linked */
    *at = head.data;
    if (!ci_read(&head, *at, sizeof(head), sp) || head.magic == WRAPPER) return 0;
  }
  if (head.magic == ELF) return size_of_elf(*at, sp);
  if (head.magic != FAT_BINARY) return size_of_text(*at);
  return (head.version >> 16) + head.data; /* the header's size lies behind a version of 16 bits */
}

struct range {
  __u64 from, size;
};

static int has_range(struct dl_phdr_info* info, size_t size, void* of) {
  (void)size;
  const struct range* range = of;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    __u64 from = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && !(part->p_flags & PF_W) && range->from >= from &&
        range->from - from < part->p_filesz && range->size <= part->p_filesz - (range->from - from))
      return 1;
  }
  return 0;
}

#define MAX_OPTIONS 64

/* Room for code of that size, with the options that the call has. */
static __u64 take_code(const struct ci_frame* frame, const struct ci_taped* taped, __u64 size) {
  __u64 options = taped->size_at == CI_NO_WORD ? 0 : (__u32)word(frame, taped->size_at);
  if (options > MAX_OPTIONS || !word(frame, taped->lists_at)) options = 0;
  __u64 at = ci_take(size, options * 16);
  for (__u64 i = 0; at && i < options; i++) {
    __u64* pair = (__u64*)ci_second_part(at) + 2 * i;
    __u32 option = 0;
    ci_read(&option, word(frame, taped->lists_at) + 4 * i, 4, frame->sp);
    ci_read(&pair[1], word(frame, taped->lists_at + 1u) + 8 * i, 8, frame->sp);
    pair[0] = option;
  }
  return at;
}

/* With the rights and the folders of the process itself. */
static __u64 keep_code_file(const struct ci_frame* frame, const struct ci_taped* taped) {
  char path[4096];
  struct stat status = {0};
  __u32 length = ci_read_string(path, word(frame, taped->at), sizeof(path));
  if (!length || path[length - 1]) return 0;
  long fd = ci_system(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
  if (fd < 0) return 0;
  bool is_file = ci_system(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) == 0 &&
                 S_ISREG(status.st_mode) && status.st_size <= (off_t)MAX_CODE;
  __u64 size = is_file ? (__u64)status.st_size : 0, read = 0;
  __u64 at = take_code(frame, taped, size);
  while (at && read < size) {
    long got =
        ci_system(SYS_read, fd, (long)(ci_first_part(at) + read), (long)(size - read), 0, 0, 0);
    if (got <= 0) break;
    read += (__u64)got;
  }
  if (at) ci_finish(at, is_file && read == size ? CI_FILLED : CI_UNREADABLE);
  ci_system(SYS_close, fd, 0, 0, 0, 0, 0);
  return at;
}

static __u64 keep_code(const struct ci_frame* frame, const struct ci_taped* taped) {
  __u64 code = word(frame, taped->at), size = find_code(&code, frame->sp);
  struct range range = {code, size};
  bool in_file = size && dl_iterate_phdr(has_range, &range);
  __u64 at = take_code(frame, taped, in_file || size > MAX_CODE ? 0 : size);
  if (!at) return 0;
  ci_payload(at)->from = code;
  if (in_file) {
    ci_payload(at)->stream = size; /* which its first part does not have */
    ci_finish(at, CI_ELSEWHERE);
  } else {
    bool read = size && size <= MAX_CODE && ci_read(ci_first_part(at), code, size, frame->sp);
    ci_finish(at, read ? CI_FILLED : CI_UNREADABLE);
  }
  return at;
}

/* ----- stopping and holding */

static bool counts(void) { return !stop.tid || stop.tid == ci_thread.tid; }

/* At a launch. Several threads may launch at once: one stops. */
static bool is_to_stop(void) {
  if (!counts()) return false;
  bool has_waited = __atomic_exchange_n(&stop.waited, 0, __ATOMIC_RELAXED);
  __u64 after = __atomic_load_n(&stop.after, __ATOMIC_RELAXED);
  do {
    if (!after || (after == 1 && stop.at_wait && !has_waited)) return false;
  } while (!__atomic_compare_exchange_n(&stop.after, &after, after - 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return after == 1;
}

static void stop_here(void) {
  ci_thread.calls_itself = true;
  struct ci_stop next = ci_take_orders();
  ci_thread.calls_itself = false;
  stop.tid = next.tid;
  stop.at_wait = next.at_wait;
  stop.waited = 0;
  __atomic_store_n(&stop.after, next.after, __ATOMIC_RELEASE);
}

static void wait_while_held(void) {
  struct timespec a_while = {.tv_sec = 1};
  __u32* held = &ci_tape()->held;
  for (__u32 by; (by = __atomic_load_n(held, __ATOMIC_ACQUIRE)) && by != ci_thread.tid;)
    ci_system(SYS_futex, (long)held, FUTEX_WAIT, by, (long)&a_while, 0, 0);
}

/* ----- a call */

static __u64 keep(const struct ci_frame* frame, const struct ci_taped* taped, bool all) {
  __u64 host = word(frame, taped->at), size = word(frame, taped->size_at);
  __u64 stream = word(frame, taped->stream_at);
  switch (taped->keep) {
    case CI_KEEP_CODE:
      return keep_code(frame, taped);
    case CI_KEEP_CODE_FILE:
      return keep_code_file(frame, taped);
    case CI_KEEP_LAUNCH:
      return all ? keep_launch(frame, taped) : 0;
    case CI_KEEP_FROM_HOST:
      return all ? ci_keep_from_host(host, size, frame->sp) : 0;
    case CI_KEEP_TO_HOST:
      return all ? ci_keep_to_host(host, size, stream) : 0;
    case CI_KEEP_EITHER: {
      if (!all) return 0;
      __u64 to = word(frame, taped->to_at);
      if (!ci_is_on_gpu(host)) return ci_keep_from_host(host, size, frame->sp);
      return ci_is_on_gpu(to) ? 0 : ci_keep_to_host(to, size, stream);
    }
    case CI_KEEP_COPY_2D:
    case CI_KEEP_COPY_3D:
      return all ? ci_keep_rows(taped->keep, host, stream, frame->sp) : 0;
    case CI_KEEP_NODES:
      return ci_keep_nodes(host, frame->sp);
    case CI_KEEP_KERNEL_NODE:
    case CI_KEEP_KERNEL_NODE_V1:
    case CI_KEEP_COPY_NODE:
    case CI_KEEP_SET_NODE:
    case CI_KEEP_ANY_NODE:
      return ci_keep_node(taped->keep, host, frame->sp);
    default:
      return 0;
  }
}

__u64 ci_tape_enter(const struct ci_frame* frame) {
  struct ci_thread* thread = &ci_thread;
  const struct ci_entry* entry = frame->entry;
  /* A library above the driver makes calls of its own, and those are what is kept. */
  if (!entry->of_driver || entry->plan.entry_only || thread->depth++) return 0;
  struct ci_tape* tape = ci_tape();
  if (__atomic_load_n(&tape->keeps, __ATOMIC_ACQUIRE) == CI_KEEPS_NOTHING) return 0;
  const struct ci_taped* taped = &entry->taped;
  bool launches = taped->keep == CI_KEEP_LAUNCH || taped->keep == CI_KEEP_GRAPH;
  wait_while_held();
  if (launches && is_to_stop()) {
    stop_here();
    tape = ci_tape();
    if (!tape) return 0;
  }
  __atomic_fetch_add(&tape->inside, 1, __ATOMIC_SEQ_CST);
  /* Who holds the others has either seen that this thread is in a call, or is seen here. */
  while (__atomic_load_n(&tape->held, __ATOMIC_SEQ_CST) &&
         __atomic_load_n(&tape->held, __ATOMIC_SEQ_CST) != thread->tid) {
    __atomic_fetch_sub(&tape->inside, 1, __ATOMIC_SEQ_CST);
    wait_while_held();
    __atomic_fetch_add(&tape->inside, 1, __ATOMIC_SEQ_CST);
  }
  thread->counted = true;
  __u32 keeps = __atomic_load_n(&tape->keeps, __ATOMIC_ACQUIRE);
  if (keeps == CI_KEEPS_NOTHING || taped->keep == CI_KEEP_NOTHING) return 0;
  thread->calls_itself = true;
  thread->kept = keep(frame, taped, keeps == CI_KEEPS_ALL);
  thread->calls_itself = false;
  return thread->kept;
}

void ci_tape_leave(const struct ci_frame* frame) {
  struct ci_thread* thread = &ci_thread;
  if (!frame->entry->of_driver || !thread->depth || --thread->depth || !thread->counted) return;
  thread->counted = false;
  const struct ci_taped* taped = &frame->entry->taped;
  if (thread->kept && ci_payload(thread->kept)->state == CI_PENDING && !frame->result) {
    if (taped->stream_at == CI_NO_WORD)
      ci_fill(thread->kept);
    else
      ci_fill_later(thread->kept);
  }
  thread->kept = 0;
  if (taped->waits && counts()) __atomic_store_n(&stop.waited, 1, __ATOMIC_RELAXED);
  if (taped->keep == CI_KEEP_WAIT && !frame->result)
    ci_fill_of(word(frame, taped->stream_at), taped->stream_at == CI_NO_WORD);
  __atomic_fetch_sub(&ci_tape()->inside, 1, __ATOMIC_SEQ_CST);
}
