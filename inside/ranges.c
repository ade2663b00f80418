/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ranges by which the program says what it does: NVTX calls these functions. If another tool
 * was to have them, it still gets each call, and its handles are the program's.
 *
 * What the program gives here it gives to a tool, to be read: texts and attributes are read where
 * they lie. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "nvtx.h"
#include "range_names.h"
#include "recording.h"

OLD_VERSION(dlopen);
OLD_VERSION(dlsym);

typedef const struct nvtx_event* event;
typedef __u64 handle;

/* ----- records */

struct said {
  struct ci_text text;
  bool unknown; /* a registered text that is not known */
  __u32 category, color;
  __u8 payload_type;
  __u64 payload;
};

static struct said narrow(const char* text) { return (struct said){.text = {.narrow = text}}; }
static struct said wide(const __u32* text) { return (struct said){.text = {.wide = text}}; }

static struct said attributes(event of) {
  struct said said = {.unknown = true};
  if (!of || of->size < sizeof(*of)) return said;
  said.category = of->category;
  if (of->color_type == NVTX_ARGB) said.color = of->color;
  if (of->payload_type > CB_PAYLOAD_NONE && of->payload_type <= CB_PAYLOAD_FLOAT) {
    said.payload_type = (__u8)of->payload_type;
    said.payload = of->payload;
  }
  if (of->message_type == NVTX_TEXT) said.text.narrow = of->message;
  if (of->message_type == NVTX_WIDE) said.text.wide = of->message;
  if (of->message_type == NVTX_REGISTERED) said.text.narrow = ci_string_of((__u64)of->message);
  said.unknown = of->message_type == NVTX_REGISTERED && !said.text.narrow;
  return said;
}

struct which {
  enum cb_range_op op;
  __u16 domain, level;
  __u64 number;
};

static void put(struct ci_thread* thread, struct which which, const struct said* said) {
  struct cb_range* record =
      ci_reserve(thread, sizeof(struct cb_range) + CB_RANGE_TEXT, CB_DROPPED_RANGE);
  if (!record) return;
  bool cut = false;
  __u32 size = ci_put_text((char*)(record + 1), said->text, CB_RANGE_TEXT, &cut);
  ci_fill_head(&record->head, thread, CB_RANGE, ci_now());
  record->head.sp = 0;
  record->head.function = (__u16)which.op;
  record->head.flags = (cut ? CB_STRING_CUT : 0) | (said->unknown ? CB_READ_FAULT : 0);
  record->head.string_size = (__u16)size;
  record->number = which.number;
  record->payload = said->payload;
  record->category = said->category;
  record->color = said->color;
  record->domain = which.domain;
  record->level = which.level;
  record->payload_type = said->payload_type;
  record->reserved[0] = record->reserved[1] = record->reserved[2] = 0;
  ci_commit(thread, (__u32)sizeof(*record) + size);
}

/* A ring has a domain's name before whatever is of that domain. */
static void name_domain(struct ci_thread* thread, __u16 number) {
  if (!number || number >= CB_RANGE_DOMAINS) return;
  __u64 bit = 1ULL << number % 64, *named = &thread->ranges.named[number / 64];
  if (likely(*named & bit)) return;
  struct said said = narrow(ci_domain_name(number));
  __u64 drops = thread->ring->drops;
  put(thread, (struct which){.op = CB_RANGE_DOMAIN, .domain = number}, &said);
  if (thread->ring->drops == drops) *named |= bit;
}

static void record(struct which which, const struct said* said) {
  struct ci_thread* thread = ci_recording_thread(CI_ALL, CB_DROPPED_RANGE);
  if (!thread) return;
  name_domain(thread, which.domain);
  put(thread, which, said);
}

static const struct said nothing;

/* How deep the thread is in a domain is known even where nothing is recorded: the first record that
 * comes says where it belongs. */
static __u16* level_of(__u16 domain) {
  return domain < CI_LEVELS ? &ci_thread.ranges.level[domain] : NULL;
}

static int push(handle of, const struct said* said) {
  __u16 domain = ci_domain_number(of), *level = level_of(domain);
  __u16 around = level ? *level : CB_NO_LEVEL;
  if (level && *level < CB_NO_LEVEL - 1) (*level)++;
  record((struct which){CB_RANGE_PUSH, domain, around, 0}, said);
  return level ? around : NVTX_NO_TRACKING;
}

static int pop(handle of) {
  __u16 domain = ci_domain_number(of), *level = level_of(domain);
  if (level && !*level) return -1; /* there is none */
  if (level) --*level;
  record((struct which){CB_RANGE_POP, domain, level ? *level : CB_NO_LEVEL, 0}, &nothing);
  return level ? *level : NVTX_NO_TRACKING;
}

static void start(handle of, __u64 number, const struct said* said) {
  record((struct which){CB_RANGE_START, ci_domain_number(of), CB_NO_LEVEL, number}, said);
}
static void end(handle of, __u64 number) {
  record((struct which){CB_RANGE_END, ci_domain_number(of), CB_NO_LEVEL, number}, &nothing);
}
static void mark(handle of, const struct said* said) {
  record((struct which){CB_RANGE_MARK, ci_domain_number(of), CB_NO_LEVEL, 0}, said);
}
static void name_category(handle of, __u32 category, struct said said) {
  said.category = category;
  record((struct which){CB_RANGE_CATEGORY, ci_domain_number(of), CB_NO_LEVEL, 0}, &said);
}

static __u64 next_number(void) {
  static __u64 numbers;
  return __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
}

/* ----- what NVTX calls. Each hands on to the other tool, where there is one. */

static nvtx_function next_core[NVTX_CORE_FUNCTIONS], next_core2[NVTX_CORE2_FUNCTIONS],
    next_payload[NVTX_PAYLOAD_FUNCTIONS];
#define NEXT(table, place, type) ((type)__atomic_load_n(&next_##table[place], __ATOMIC_RELAXED))

/* Functions that return nothing, or the depth. If the other tool knows the depth, it is the same.
 */
#define TELL(table, place, types, values)                  \
  do {                                                     \
    void(*told) types = NEXT(table, place, void(*) types); \
    if (unlikely(told != NULL)) told values;               \
  } while (0)

#define MARK(name, place, type, of)     \
  static void name(type given) {        \
    TELL(core, place, (type), (given)); \
    struct said said = of(given);       \
    mark(0, &said);                     \
  }
MARK(mark_ex, NVTX_MARK_EX, event, attributes)
MARK(mark_a, NVTX_MARK_A, const char*, narrow)
MARK(mark_w, NVTX_MARK_W, const __u32*, wide)

#define PUSH(name, place, type, of)     \
  static int name(type given) {         \
    TELL(core, place, (type), (given)); \
    struct said said = of(given);       \
    return push(0, &said);              \
  }
PUSH(push_ex, NVTX_RANGE_PUSH_EX, event, attributes)
PUSH(push_a, NVTX_RANGE_PUSH_A, const char*, narrow)
PUSH(push_w, NVTX_RANGE_PUSH_W, const __u32*, wide)

static int range_pop(void) {
  TELL(core, NVTX_RANGE_POP, (void), ());
  return pop(0);
}

#define START(name, place, type, of)                                     \
  static __u64 name(type given) {                                        \
    __u64 (*told)(type) = NEXT(core, place, __u64(*)(type));             \
    __u64 number = unlikely(told != NULL) ? told(given) : next_number(); \
    struct said said = of(given);                                        \
    start(0, number, &said);                                             \
    return number;                                                       \
  }
START(start_ex, NVTX_RANGE_START_EX, event, attributes)
START(start_a, NVTX_RANGE_START_A, const char*, narrow)
START(start_w, NVTX_RANGE_START_W, const __u32*, wide)

static void range_end(__u64 number) {
  TELL(core, NVTX_RANGE_END, (__u64), (number));
  end(0, number);
}

static void category_a(__u32 category, const char* name) {
  TELL(core, NVTX_NAME_CATEGORY_A, (__u32, const char*), (category, name));
  name_category(0, category, narrow(name));
}
static void category_w(__u32 category, const __u32* name) {
  TELL(core, NVTX_NAME_CATEGORY_W, (__u32, const __u32*), (category, name));
  name_category(0, category, wide(name));
}

static void domain_mark(handle of, event given) {
  TELL(core2, NVTX_DOMAIN_MARK_EX, (handle, event), (of, given));
  struct said said = attributes(given);
  mark(of, &said);
}
static __u64 domain_start(handle of, event given) {
  __u64 (*told)(handle, event) = NEXT(core2, NVTX_DOMAIN_RANGE_START_EX, __u64(*)(handle, event));
  __u64 number = unlikely(told != NULL) ? told(of, given) : next_number();
  struct said said = attributes(given);
  start(of, number, &said);
  return number;
}
static void domain_end(handle of, __u64 number) {
  TELL(core2, NVTX_DOMAIN_RANGE_END, (handle, __u64), (of, number));
  end(of, number);
}
static int domain_push(handle of, event given) {
  TELL(core2, NVTX_DOMAIN_RANGE_PUSH_EX, (handle, event), (of, given));
  struct said said = attributes(given);
  return push(of, &said);
}
static int domain_pop(handle of) {
  TELL(core2, NVTX_DOMAIN_RANGE_POP, (handle), (of));
  return pop(of);
}
static void domain_category_a(handle of, __u32 category, const char* name) {
  TELL(core2, NVTX_DOMAIN_NAME_CATEGORY_A, (handle, __u32, const char*), (of, category, name));
  name_category(of, category, narrow(name));
}
static void domain_category_w(handle of, __u32 category, const __u32* name) {
  TELL(core2, NVTX_DOMAIN_NAME_CATEGORY_W, (handle, __u32, const __u32*), (of, category, name));
  name_category(of, category, wide(name));
}

static handle string_a(handle of, const char* text) {
  handle (*told)(handle, const char*) =
      NEXT(core2, NVTX_DOMAIN_REGISTER_STRING_A, handle(*)(handle, const char*));
  return ci_keep_string(told ? told(of, text) : 0, (struct ci_text){.narrow = text});
}
static handle string_w(handle of, const __u32* text) {
  handle (*told)(handle, const __u32*) =
      NEXT(core2, NVTX_DOMAIN_REGISTER_STRING_W, handle(*)(handle, const __u32*));
  return ci_keep_string(told ? told(of, text) : 0, (struct ci_text){.wide = text});
}
static handle domain_a(const char* name) {
  handle (*told)(const char*) = NEXT(core2, NVTX_DOMAIN_CREATE_A, handle(*)(const char*));
  return ci_keep_domain(told ? told(name) : 0, (struct ci_text){.narrow = name});
}
static handle domain_w(const __u32* name) {
  handle (*told)(const __u32*) = NEXT(core2, NVTX_DOMAIN_CREATE_W, handle(*)(const __u32*));
  return ci_keep_domain(told ? told(name) : 0, (struct ci_text){.wide = name});
}

/* The same by the extension for payloads. A program that ends a range by it has begun it by its
 * name (NCCL does); of one that begins here, the name is somewhere in a payload, and not known. */
static const struct said unnamed = {.unknown = true};

static void payload_mark(handle of, const void* data, size_t count) {
  TELL(payload, NVTX_MARK_PAYLOAD, (handle, const void*, size_t), (of, data, count));
  mark(of, &unnamed);
}
static int payload_push(handle of, const void* data, size_t count) {
  TELL(payload, NVTX_RANGE_PUSH_PAYLOAD, (handle, const void*, size_t), (of, data, count));
  return push(of, &unnamed);
}
static int payload_pop(handle of, const void* data, size_t count) {
  TELL(payload, NVTX_RANGE_POP_PAYLOAD, (handle, const void*, size_t), (of, data, count));
  return pop(of);
}
static __u64 payload_start(handle of, const void* data, size_t count) {
  __u64 (*told)(handle, const void*, size_t) =
      NEXT(payload, NVTX_RANGE_START_PAYLOAD, __u64(*)(handle, const void*, size_t));
  __u64 number = unlikely(told != NULL) ? told(of, data, count) : next_number();
  start(of, number, &unnamed);
  return number;
}
static void payload_end(handle of, __u64 number, const void* data, size_t count) {
  TELL(payload, NVTX_RANGE_END_PAYLOAD, (handle, __u64, const void*, size_t),
       (of, number, data, count));
  end(of, number);
}
static __u8 domain_is_enabled(handle of) {
  (void)of;
  return 1;
}

/* ----- being loaded */

#define F(function) (nvtx_function) function
static const nvtx_function of_core[NVTX_CORE_FUNCTIONS] = {
    [NVTX_MARK_EX] = F(mark_ex),
    [NVTX_MARK_A] = F(mark_a),
    [NVTX_MARK_W] = F(mark_w),
    [NVTX_RANGE_START_EX] = F(start_ex),
    [NVTX_RANGE_START_A] = F(start_a),
    [NVTX_RANGE_START_W] = F(start_w),
    [NVTX_RANGE_END] = F(range_end),
    [NVTX_RANGE_PUSH_EX] = F(push_ex),
    [NVTX_RANGE_PUSH_A] = F(push_a),
    [NVTX_RANGE_PUSH_W] = F(push_w),
    [NVTX_RANGE_POP] = F(range_pop),
    [NVTX_NAME_CATEGORY_A] = F(category_a),
    [NVTX_NAME_CATEGORY_W] = F(category_w),
};
static const nvtx_function of_core2[NVTX_CORE2_FUNCTIONS] = {
    [NVTX_DOMAIN_MARK_EX] = F(domain_mark),
    [NVTX_DOMAIN_RANGE_START_EX] = F(domain_start),
    [NVTX_DOMAIN_RANGE_END] = F(domain_end),
    [NVTX_DOMAIN_RANGE_PUSH_EX] = F(domain_push),
    [NVTX_DOMAIN_RANGE_POP] = F(domain_pop),
    [NVTX_DOMAIN_NAME_CATEGORY_A] = F(domain_category_a),
    [NVTX_DOMAIN_NAME_CATEGORY_W] = F(domain_category_w),
    [NVTX_DOMAIN_REGISTER_STRING_A] = F(string_a),
    [NVTX_DOMAIN_REGISTER_STRING_W] = F(string_w),
    [NVTX_DOMAIN_CREATE_A] = F(domain_a),
    [NVTX_DOMAIN_CREATE_W] = F(domain_w),
};

static const nvtx_function of_payload[NVTX_PAYLOAD_FUNCTIONS] = {
    [NVTX_MARK_PAYLOAD] = F(payload_mark),     [NVTX_RANGE_PUSH_PAYLOAD] = F(payload_push),
    [NVTX_RANGE_POP_PAYLOAD] = F(payload_pop), [NVTX_RANGE_START_PAYLOAD] = F(payload_start),
    [NVTX_RANGE_END_PAYLOAD] = F(payload_end), [NVTX_DOMAIN_IS_ENABLED] = F(domain_is_enabled),
};

/* A module's functions, and what stood in their places before another tool came. */
struct module {
  nvtx_function** places;
  unsigned count;
  nvtx_function before[NVTX_CORE2_FUNCTIONS];
};

static struct module look_at(const struct nvtx_callbacks* nvtx, int which) {
  struct module module = {0};
  if (!nvtx->functions(which, &module.places, &module.count) || !module.places) module.count = 0;
  if (module.count > NVTX_CORE2_FUNCTIONS) module.count = NVTX_CORE2_FUNCTIONS;
  for (unsigned i = 0; i < module.count; i++)
    module.before[i] = module.places[i] ? *module.places[i] : NULL;
  return module;
}

/* Takes the places, and keeps what another tool has put there. */
static void take(const struct module* module, const nvtx_function* ours, nvtx_function* next,
                 unsigned most) {
  for (unsigned i = 0; i < most && i < module->count; i++) {
    nvtx_function* place = module->places[i];
    if (!ours[i] || !place) continue;
    if (*place != module->before[i]) __atomic_store_n(&next[i], *place, __ATOMIC_RELAXED);
    *place = ours[i];
  }
}

int InitializeInjectionNvtx2(nvtx_export_table export_table);
int InitializeInjectionNvtxExtension(struct nvtx_extension* extension);

/* What the other tool's library has by this name; null: nothing, or it is this library. */
static void* next_function(const char* name, void* ours) {
  const char* path = getenv(CI_NVTX_NEXT);
  void* library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
  void* found = library ? dlsym(library, name) : NULL;
  return found != ours ? found : NULL;
}

static void load_next(nvtx_export_table export_table) {
  int (*initialize)(nvtx_export_table) = (int (*)(nvtx_export_table))next_function(
      "InitializeInjectionNvtx2", (void*)InitializeInjectionNvtx2);
  if (initialize) initialize(export_table);
}

static int load_next_extension(struct nvtx_extension* extension) {
  int (*initialize)(struct nvtx_extension*) = (int (*)(struct nvtx_extension*))next_function(
      "InitializeInjectionNvtxExtension", (void*)InitializeInjectionNvtxExtension);
  return initialize ? initialize(extension) : 0;
}

/* Called by each copy of NVTX, at the first call of any of its functions. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    nvtx_export_table export_table) {
  int kept = errno;
  const struct nvtx_callbacks* nvtx = export_table ? export_table(NVTX_CALLBACKS) : NULL;
  bool can = nvtx && nvtx->size >= sizeof(*nvtx) && nvtx->functions;
  if (can) {
    struct module core = look_at(nvtx, NVTX_CORE), core2 = look_at(nvtx, NVTX_CORE2);
    load_next(export_table);
    ci_begin_early();
    take(&core, of_core, next_core, NVTX_CORE_FUNCTIONS);
    take(&core2, of_core2, next_core2, NVTX_CORE2_FUNCTIONS);
  }
  errno = kept;
  return can;
}

/* Called by each copy of an extension, at the first call of any of its functions: after the copy of
 * NVTX beside it has called the above. */
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    struct nvtx_extension* extension) {
  int kept = errno;
  bool ours = extension && extension->size >= sizeof(*extension) &&
              extension->module == NVTX_PAYLOAD_MODULE && extension->segments;
  struct nvtx_segment* segment = ours ? extension->segment : NULL;
  nvtx_function* places[NVTX_PAYLOAD_FUNCTIONS];
  struct module module = {.places = places};
  if (segment) {
    module.count =
        segment->count < NVTX_PAYLOAD_FUNCTIONS ? (unsigned)segment->count : NVTX_PAYLOAD_FUNCTIONS;
    for (unsigned i = 0; i < module.count; i++) {
      places[i] = &segment->functions[i];
      module.before[i] = *places[i];
    }
  }
  int taken = load_next_extension(extension);
  if (segment) take(&module, of_payload, next_payload, NVTX_PAYLOAD_FUNCTIONS);
  errno = kept;
  return segment ? 1 : taken;
}
