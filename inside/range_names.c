/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tables of handles that any thread fills and any thread reads, without a lock: an entry never
 * changes once its handle is there. */
#include "range_names.h"

#define STRINGS (1 << 13)
#define TEXT (512 << 10) /* of all names together; the pages are taken as they are used */

struct named {
  __u64 handle; /* 0: free; TAKEN: it is being filled in */
  const char* text;
};
#define TAKEN 1

/* The first is never free: 0 is the number of the default domain. */
static struct named domains[CB_RANGE_DOMAINS] = {{TAKEN, NULL}};
static struct named strings[STRINGS];
static char texts[TEXT];
static __u64 text_used;
static const char no_room; /* its address is the handle of what there was no room for */

static __u32 put_wide(char* to, const __u32* wide, __u32 most, bool* cut) {
  __u32 size = 0;
  for (; *wide; wide++) {
    __u32 c = *wide <= 0x10ffff ? *wide : 0xfffd;
    __u32 bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (size + bytes + 1 > most) {
      *cut = true;
      break;
    }
    if (bytes == 1) {
      to[size++] = (char)c;
      continue;
    }
    static const __u8 FIRST[] = {0, 0, 0xc0, 0xe0, 0xf0};
    to[size++] = (char)(FIRST[bytes] | c >> 6 * (bytes - 1));
    for (__u32 left = bytes - 1; left; left--)
      to[size++] = (char)(0x80 | (c >> 6 * (left - 1) & 0x3f));
  }
  to[size++] = 0;
  return size;
}

__u32 ci_put_text(char* to, struct ci_text text, __u32 most, bool* cut) {
  if (text.wide) return put_wide(to, text.wide, most, cut);
  if (!text.narrow) return 0;
  __u32 size = 0;
  for (; text.narrow[size] && size + 1 < most; size++) to[size] = text.narrow[size];
  if (text.narrow[size]) *cut = true;
  to[size++] = 0;
  return size;
}

/* Null: there is no room. */
static const char* keep_text(struct ci_text text) {
  char buffer[CB_RANGE_TEXT];
  bool cut = false;
  __u32 size = ci_put_text(buffer, text, sizeof(buffer), &cut);
  if (!size) return "";
  __u64 at = __atomic_fetch_add(&text_used, size, __ATOMIC_RELAXED);
  if (at + size > TEXT) return NULL;
  __builtin_memcpy(texts + at, buffer, size);
  return texts + at;
}

static __u64 first_place(__u64 handle, __u64 size) {
  return (handle * CB_HASH_FACTOR >> 32) & (size - 1);
}

static struct named* find(struct named* table, __u64 size, __u64 handle) {
  for (__u64 i = 0, at = first_place(handle, size); i < size; i++, at = (at + 1) & (size - 1)) {
    __u64 here = __atomic_load_n(&table[at].handle, __ATOMIC_ACQUIRE);
    if (here == handle) return &table[at];
    if (!here) return NULL;
  }
  return NULL;
}

/* A free entry, which nobody else gets. Without another tool, its address is its handle; so it may
 * be any, if only it is found by that. */
static struct named* take(struct named* table, __u64 size, __u64 handle) {
  static __u64 next;
  __u64 first = handle ? first_place(handle, size)
                       : __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) & (size - 1);
  for (__u64 i = 0, at = first; i < size; i++, at = (at + 1) & (size - 1)) {
    __u64 none = 0;
    if (__atomic_compare_exchange_n(&table[at].handle, &none, TAKEN, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      return &table[at];
  }
  return NULL;
}

static struct named* entry_of(struct named* table, __u64 size, __u64 handle) {
  __u64 at = handle - (__u64)table;
  bool is_ours = at < size * sizeof(*table) && at % sizeof(*table) == 0;
  if (is_ours) return &table[at / sizeof(*table)];
  return find(table, size, handle);
}

static __u64 keep(struct named* table, __u64 size, __u64 handle, struct ci_text text) {
  if (handle && find(table, size, handle)) return handle;
  const char* kept = keep_text(text);
  struct named* entry = kept ? take(table, size, handle) : NULL;
  if (!entry) return handle ? handle : (__u64)&no_room;
  entry->text = kept;
  if (!handle) handle = (__u64)entry;
  __atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
  return handle;
}

/* A program that makes the same domain again and again, as some do for each range, has one. */
static __u64 known_domain(struct ci_text name) {
  char buffer[CB_RANGE_TEXT];
  bool cut = false;
  if (!ci_put_text(buffer, name, sizeof(buffer), &cut)) return 0;
  for (int i = 1; i < CB_RANGE_DOMAINS; i++) {
    __u64 handle = __atomic_load_n(&domains[i].handle, __ATOMIC_ACQUIRE);
    if (handle <= TAKEN) continue;
    const char *one = buffer, *other = domains[i].text;
    while (*one && *one == *other) one++, other++;
    if (*one == *other) return handle;
  }
  return 0;
}

__u64 ci_keep_domain(__u64 handle, struct ci_text name) {
  __u64 known = handle ? 0 : known_domain(name);
  return known ? known : keep(domains, CB_RANGE_DOMAINS, handle, name);
}

__u16 ci_domain_number(__u64 handle) {
  if (!handle) return 0;
  const struct named* entry = entry_of(domains, CB_RANGE_DOMAINS, handle);
  return entry && entry->text ? (__u16)(entry - domains) : CB_NO_DOMAIN;
}

const char* ci_domain_name(__u16 number) { return domains[number].text; }

__u64 ci_keep_string(__u64 handle, struct ci_text text) {
  return keep(strings, STRINGS, handle, text);
}

const char* ci_string_of(__u64 handle) {
  if (!handle) return NULL;
  const struct named* entry = entry_of(strings, STRINGS, handle);
  return entry ? entry->text : NULL;
}
