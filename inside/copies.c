/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Keeps the bytes that copies bring to a GPU at their call, and those that come from one when they
 * have come: include/cudabpf/taping.h.
 */
#include <sys/syscall.h>

#include "taping.h"

bool ci_is_on_gpu(__u64 address) {
  enum { MEMORY_TYPE = 2 }; /* a CUpointer_attribute */
  unsigned type = 0;
  return ci_cuda.cuPointerGetAttribute &&
         ci_cuda.cuPointerGetAttribute(&type, MEMORY_TYPE, address) == 0 && type == CI_ON_DEVICE;
}

__u64 ci_keep_from_host(__u64 from, __u64 size, __u64 sp) {
  __u64 at = ci_take(size, 0);
  if (!at) return 0;
  ci_payload(at)->from = from;
  ci_payload(at)->from_host = 1;
  ci_finish(at, !size || ci_read(ci_first_part(at), from, size, sp) ? CI_FILLED : CI_UNREADABLE);
  return at;
}

__u64 ci_keep_to_host(__u64 to, __u64 size, __u64 stream) {
  __u64 at = ci_take(size, 0);
  if (!at) return 0;
  ci_payload(at)->from = to;
  ci_payload(at)->stream = stream;
  return at;
}

/* ----- of rows */

struct plane { /* a CUDA_MEMCPY2D */
  struct {
    __u64 x, y;
    __u32 type, padding;
    __u64 host, device, array, pitch;
  } from, to;
  __u64 width, height;
};
_Static_assert(sizeof(struct plane) == 128, "CUDA_MEMCPY2D");

static bool read_rows(struct ci_rows* rows, enum ci_keep what, __u64 given, __u64 sp) {
  if (what == CI_KEEP_COPY_3D) return ci_read(rows, given, sizeof(*rows), sp);
  struct plane plane;
  if (!ci_read(&plane, given, sizeof(plane), sp)) return false;
#define SIDE(of)              \
  {.x = plane.of.x,           \
   .y = plane.of.y,           \
   .type = plane.of.type,     \
   .host = plane.of.host,     \
   .device = plane.of.device, \
   .array = plane.of.array,   \
   .pitch = plane.of.pitch}
  *rows = (struct ci_rows){
      .from = SIDE(from), .to = SIDE(to), .width = plane.width, .height = plane.height, .depth = 1};
#undef SIDE
  return true;
}

/* The side that lies on the host, if there is one: of two, that from which is copied. */
static const struct ci_rows_side* side_on_host(const struct ci_rows* rows) {
  if (rows->from.type == CI_ON_HOST) return &rows->from;
  return rows->to.type == CI_ON_HOST ? &rows->to : NULL;
}

/* Row by row, without what lies between them. */
static bool read_bytes_of(const struct ci_rows* rows, __u8* to, __u64 sp) {
  const struct ci_rows_side* side = side_on_host(rows);
  __u64 pitch = side->pitch ? side->pitch : rows->width;
  __u64 slice = pitch * (side->height ? side->height : rows->height);
  __u64 from = side->host + side->z * slice + side->y * pitch + side->x;
  for (__u64 plane = 0; plane < rows->depth; plane++)
    for (__u64 row = 0; row < rows->height; row++, to += rows->width)
      if (!ci_read(to, from + plane * slice + row * pitch, rows->width, sp)) return false;
  return true;
}

/* 0: none are on the host. False: there cannot be so many. */
static bool find_size(const struct ci_rows* rows, __u64* size) {
  const __u64 MAX_ROWS = 1 << 20;
  __u64 count = 0;
  *size = 0;
  if (!side_on_host(rows)) return true;
  return !__builtin_mul_overflow(rows->height, rows->depth, &count) && count <= MAX_ROWS &&
         !__builtin_mul_overflow(rows->width, count, size);
}

void ci_resolve_memory_types(struct ci_rows* rows) {
  struct ci_rows_side* sides[] = {&rows->from, &rows->to};
  for (int i = 0; i < 2; i++) {
    if (sides[i]->type != CI_UNIFIED) continue;
    sides[i]->type = ci_is_on_gpu(sides[i]->device) ? CI_ON_DEVICE : CI_ON_HOST;
    if (sides[i]->type == CI_ON_HOST) sides[i]->host = sides[i]->device;
  }
}

__u64 ci_keep_rows(enum ci_keep what, __u64 given, __u64 stream, __u64 sp) {
  struct ci_rows rows;
  __u64 size = 0;
  bool is_read = read_rows(&rows, what, given, sp);
  if (is_read) ci_resolve_memory_types(&rows);
  is_read = is_read && find_size(&rows, &size);
  __u64 at = ci_take(size, is_read ? sizeof(rows) : 0);
  if (!at) return 0;
  if (!is_read) {
    ci_finish(at, CI_UNREADABLE);
    return at;
  }
  __builtin_memcpy(ci_second_part(at), &rows, sizeof(rows));
  ci_payload(at)->from_host = rows.from.type == CI_ON_HOST;
  ci_payload(at)->stream = stream;
  if (!size || rows.from.type == CI_ON_HOST) ci_fill(at);
  return at;
}

/* ----- bytes that come later */

void ci_fill(__u64 at) {
  struct ci_payload* payload = ci_payload(at);
  __u64 sp = (__u64)__builtin_frame_address(0);
  bool read = !payload->size;
  if (!read && payload->more)
    read = read_bytes_of((struct ci_rows*)ci_second_part(at), ci_first_part(at), sp);
  else if (!read)
    read = ci_read(ci_first_part(at), payload->from, payload->size, sp);
  ci_finish(at, read ? CI_FILLED : CI_UNREADABLE);
}

static __u32 pending_lock;

/* False: a signal's handler has interrupted who has it, perhaps. */
static bool lock_pending(void) {
  for (int i = 0; i < 1000; i++) {
    __u32 free = 0;
    if (__atomic_compare_exchange_n(&pending_lock, &free, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return true;
    ci_system(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
  }
  return false;
}

static void unlock_pending(void) { __atomic_store_n(&pending_lock, 0, __ATOMIC_RELEASE); }

void ci_fill_later(__u64 at) {
  if (!lock_pending()) return;
  ci_payload(at)->next = ci_tape()->pending;
  ci_tape()->pending = at;
  unlock_pending();
}

void ci_fill_of(__u64 stream, bool for_all) {
  if (!__atomic_load_n(&ci_tape()->pending, __ATOMIC_RELAXED) || !lock_pending()) return;
  for (__u64* link = &ci_tape()->pending; *link;) {
    __u64 at = *link;
    if (!for_all && ci_payload(at)->stream != stream) {
      link = &ci_payload(at)->next;
      continue;
    }
    *link = ci_payload(at)->next;
    ci_fill(at);
  }
  unlock_pending();
}
