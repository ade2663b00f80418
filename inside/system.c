/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The system, by bare system calls: libc's functions are cancellation points and set errno. */
#include <fcntl.h>
#include <sys/syscall.h>

#include <signal.h>
#include "inside.h"

#define PAGE 4096ULL
#define REACH ((1ULL << 31) - (1ULL << 20)) /* of a jump, with some room to spare */
#define AWAY (64ULL << 30)

long ci_system(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

long ci_map_away(enum ci_away place, __u64 size, int protection, int flags, int fd) {
  __u64 hint = ((__u64)ci_map_away & ~(PAGE - 1)) - place * AWAY;
  return ci_system(SYS_mmap, (long)hint, (long)size, protection, flags, fd, 0);
}

/* A file below /proc, read line by line. */
struct lines {
  long fd;
  size_t begin, end;
  char buffer[4096];
};

static bool open_lines(struct lines* lines, const char* path) {
  lines->fd = ci_system(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  lines->begin = lines->end = 0;
  return lines->fd >= 0;
}

/* The next line without its end; null: there is none. A line longer than the buffer is cut. */
static const char* next_line(struct lines* lines) {
  for (;;) {
    for (size_t i = lines->begin; i < lines->end; i++) {
      if (lines->buffer[i] != '\n') continue;
      char* line = lines->buffer + lines->begin;
      lines->buffer[i] = 0;
      lines->begin = i + 1;
      return line;
    }
    size_t kept = lines->end - lines->begin;
    if (kept == sizeof(lines->buffer)) kept = 0;
    for (size_t i = 0; i < kept; i++) lines->buffer[i] = lines->buffer[lines->begin + i];
    lines->begin = 0;
    long got = ci_system(SYS_read, lines->fd, (long)(lines->buffer + kept),
                         (long)(sizeof(lines->buffer) - kept), 0, 0, 0);
    lines->end = kept;
    if (got <= 0) return NULL;
    lines->end += (size_t)got;
  }
}

static void close_lines(struct lines* lines) { ci_system(SYS_close, lines->fd, 0, 0, 0, 0, 0); }

static __u64 number(const char** text, unsigned base) {
  __u64 value = 0;
  for (;; (*text)++) {
    unsigned digit;
    if (**text >= '0' && **text <= '9')
      digit = (unsigned)(**text - '0');
    else if (**text >= 'a' && **text <= 'f')
      digit = (unsigned)(**text - 'a') + 10;
    else
      return value;
    if (digit >= base) return value;
    value = value * base + digit;
  }
}

/* The place in the gap [from, to) that is nearest to `middle`; 0: it is too small. */
static __u64 place_in(__u64 from, __u64 to, __u64 size, __u64 middle) {
  /* Not right beside a mapping: a stack grows downwards. */
  from += 16 * PAGE;
  if (to < from + size + 16 * PAGE) return 0;
  __u64 last = to - size - 16 * PAGE;
  if (middle <= from) return from;
  return middle < last ? middle & ~(PAGE - 1) : last;
}

__u64 ci_find_gap(__u64 from, __u64 to, __u64 size) {
  struct lines lines;
  if (!open_lines(&lines, "/proc/self/maps")) return 0;
  __u64 lowest = to > REACH ? to - REACH : 0, highest = from + REACH;
  __u64 best = 0, best_distance = ~0ULL, free_from = 1 << 20;
  for (bool more = true; more;) {
    const char* line = next_line(&lines);
    __u64 begin = ~0ULL >> 17, end = begin; /* the end of a process's address space */
    if (line) {
      begin = number(&line, 16);
      if (*line == '-') line++;
      end = number(&line, 16);
    } else {
      more = false;
    }
    __u64 low = free_from > lowest ? free_from : lowest;
    __u64 high = begin < highest ? begin : highest;
    __u64 at = low < high ? place_in(low, high, size, from) : 0;
    __u64 distance = at < from ? from - at : at - from;
    if (at && distance < best_distance) {
      best = at;
      best_distance = distance;
    }
    if (end > free_from) free_from = end;
  }
  close_lines(&lines);
  return best;
}

static bool is_heap(const char* line) {
  static const char name[] = " [heap]";
  for (; *line; line++) {
    if (*line == '/') return false; /* a file, which may be named anything */
    size_t i = 0;
    while (name[i] && line[i] == name[i]) i++;
    if (!name[i] && !line[i]) return true;
  }
  return false;
}

__u64 ci_heap_until(__u64 end) {
  struct lines lines;
  if (!open_lines(&lines, "/proc/self/maps")) return 0;
  __u64 begin = 0, until = 0;
  bool whole = true;
  for (const char* line; (line = next_line(&lines));) {
    if (!is_heap(line)) continue;
    __u64 from = number(&line, 16);
    if (*line == '-') line++;
    __u64 to = number(&line, 16);
    if (!begin) begin = until = from;
    whole = whole && from == until && line[0] == ' ' && line[1] == 'r';
    until = to;
  }
  close_lines(&lines);
  return whole && until - PAGE < end && end <= until ? begin : 0;
}

bool ci_has_debugger(void) {
  struct lines lines;
  if (!open_lines(&lines, "/proc/self/status")) return false;
  static const char key[] = "TracerPid:\t";
  bool found = false;
  for (const char* line; (line = next_line(&lines));) {
    size_t i = 0;
    while (key[i] && line[i] == key[i]) i++;
    if (key[i]) continue;
    found = line[i] != '0';
    break;
  }
  close_lines(&lines);
  return found;
}

__u64 ci_block_signals(void) {
  __u64 all = ~0ULL, before = 0;
  ci_system(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof(all), 0, 0);
  return before;
}

void ci_restore_signals(__u64 before) {
  ci_system(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before), 0, 0);
}
