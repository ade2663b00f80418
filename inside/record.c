/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A call's two records, made as bpf/call.h makes them in the kernel. */
#include "recording.h"
#include "taping.h"

static __u64 names_sent[CB_NAME_SLOTS];

/* Sends the kernel's name once per handle. */
static void send_name(struct ci_thread* thread, __u64 handle, __u64 sp) {
  __u32 epoch = __atomic_load_n(&ci_process->names_epoch, __ATOMIC_RELAXED);
  __u64 key = cb_name_key(handle, ci_process->generation, epoch);
  __u64* slot = &names_sent[CB_NAME_SLOT(key)];
  if (__builtin_expect(__atomic_load_n(slot, __ATOMIC_RELAXED) == key, 1)) return;
  struct cb_name* name =
      ci_reserve(thread, sizeof(struct cb_name) + CB_LONG_STRING, CB_DROPPED_NAME);
  if (!name) return;
  ci_fill_head(&name->head, thread, CB_NAME, ci_now());
  name->head.sp = 0;
  name->head.function = 0;
  name->handle = handle;
  __u64 at = 0;
  char* string = (char*)(name + 1);
  __u32 size = 0;
  if (ci_read(&at, handle + CB_HANDLE_NAME_AT, sizeof(at), sp))
    size = ci_read_string(string, at, CB_LONG_STRING);
  if (size == CB_LONG_STRING && string[size - 1]) {
    string[size - 1] = 0;
    name->head.flags = CB_STRING_CUT;
  }
  name->head.string_size = (__u16)size;
  ci_commit(thread, (__u32)sizeof(struct cb_name) + size);
  __atomic_store_n(slot, key, __ATOMIC_RELAXED);
}

/* Argument words: the registers', then those on the stack above the return address. */
static inline __u64 argument(const struct ci_frame* frame, unsigned word) {
  if (word < CI_REGISTER_ARGS) return frame->args[word];
  return ((const __u64*)frame->sp)[1 + word - CI_REGISTER_ARGS];
}

/* The next row, until there is none. */
static inline const struct cb_read* row(const struct ci_entry* entry, unsigned i) {
  const struct cb_read* read = &entry->reads[i];
  return i < CB_MAX_READS && read->kind != CB_READ_NOTHING ? read : NULL;
}

static inline __u64 pointed_to(const struct cb_read* read, __u64 pointer) {
  return pointer ? pointer + read->offset : 0;
}

static void keep_returned(struct ci_frame* frame) {
  const struct cb_read* read;
  for (unsigned i = 0; i < CB_MAX_RETURNED; i++) frame->outs[i] = 0;
  for (unsigned i = 0; (read = row(frame->entry, i)); i++) {
    if (read->kind == CB_READ_RETURN && read->base < CB_MAX_ARGS)
      frame->outs[read->to] = pointed_to(read, argument(frame, read->base));
    if (read->kind == CB_READ_LIST) {
      frame->array.from = pointed_to(read, argument(frame, read->base));
      frame->array.words = cb_listed(argument(frame, read->count), read->size / 8);
    }
  }
}

struct extra { /* of a record, behind its argument words */
  __u32 struct_size, string_size, appended;
  __u8 flags;
};

static struct extra read_string(char* to, __u64 from) {
  struct extra extra = {.string_size = ci_read_string(to, from, CB_LONG_STRING)};
  if (!extra.string_size) extra.flags = CB_READ_FAULT;
  if (extra.string_size == CB_LONG_STRING && to[CB_LONG_STRING - 1]) {
    to[CB_LONG_STRING - 1] = 0;
    extra.flags = CB_STRING_CUT;
  }
  return extra;
}

/* What rows read whose pointers are known, all at once. */
struct reading {
  struct ci_part parts[CB_MAX_READS];
  unsigned count;
};

/* False: the rest cannot be read. */
static bool read_parts(struct reading* reading, const __u64* words, __u64 sp, struct extra* extra) {
  unsigned count = reading->count;
  reading->count = 0;
  bool all = ci_read_parts(reading->parts, count, sp);
  for (unsigned i = 0; i < count; i++) {
    const struct ci_part* part = &reading->parts[i];
    if (!all && !ci_read(part->to, part->from, part->size, sp)) {
      extra->flags = CB_READ_FAULT;
      return false;
    }
    extra->struct_size = (__u32)((__u64)((__u8*)part->to - (const __u8*)words) + part->size);
  }
  return true;
}

static struct extra read_rows(const struct ci_frame* frame, __u64* words, unsigned nargs) {
  struct extra extra = {0};
  struct reading reading = {.count = 0};
  const struct cb_read* read;
  for (unsigned i = 0; (read = row(frame->entry, i)); i++) {
    if (read->kind >= CB_READ_RETURN) continue;
    bool by_read = read->base >= nargs || read->count >= nargs;
    if (by_read && !read_parts(&reading, words + nargs, frame->sp, &extra)) return extra;
    __u64 from = pointed_to(read, words[read->base]), size = read->size;
    if (read->kind == CB_READ_STRING) return read_string((char*)(words + nargs), from);
    if (read->kind == CB_READ_ARRAY && words[read->count] < size / 8) size = words[read->count] * 8;
    if (read->kind == CB_READ_INTS) size = from ? cb_listed(words[read->count], size / 4) * 4 : 0;
    reading.parts[reading.count++] = (struct ci_part){words + read->to, from, size};
  }
  read_parts(&reading, words + nargs, frame->sp, &extra);
  return extra;
}

/* The kernel reports the call. */
static void record_stack_alone(const struct ci_frame* frame) {
  struct ci_thread* thread = ci_recording_thread(CI_ALL, CB_DROPPED_STACK);
  __u64 number = thread ? ci_stack_number(thread) : 0;
  if (!number) return;
  struct cb_call_stack* record = ci_reserve(thread, sizeof(*record), CB_DROPPED_STACK);
  if (!record) return;
  ci_fill_head(&record->head, thread, CB_CALL_STACK, ci_now());
  record->head.sp = (__u32)frame->sp;
  record->head.function = 0; /* the kernel side has numbers of its own */
  record->number = number;
  ci_commit(thread, sizeof(*record));
}

/* Appends a word to what is behind the arguments. */
static void append(__u64* args, unsigned nargs, struct extra* extra, __u64 word, __u8 flag) {
  __builtin_memcpy(
      (__u8*)(args + nargs) + extra->struct_size + extra->string_size + extra->appended, &word,
      sizeof(word));
  extra->appended += (__u32)sizeof(word);
  extra->flags |= flag;
}

bool ci_enter(struct ci_frame* frame) {
  const struct ci_entry* entry = frame->entry;
  struct cb_plan plan = entry->plan;
  bool taped = unlikely(ci_tape() != NULL);
  if (taped && ci_calls_itself()) return false;
  if (unlikely(entry->looks)) ci_look_for_libraries();
  if (unlikely(entry->stack == CI_STACK_ALONE)) {
    record_stack_alone(frame);
    return false;
  }
  struct ci_thread* thread = ci_recording_thread(CI_ALL, CB_DROPPED_ENTRY);
  /* Threads whose calls are recorded must take handles for new, too. */
  if (unlikely(plan.forgets_names) && ci_state() == CI_TRACED)
    __atomic_fetch_add(&ci_process->names_epoch, 1, __ATOMIC_RELAXED);
  if (!thread) return false;
  if (unlikely(entry->describes)) ci_show_descriptors(thread, frame->entry);
  if (unlikely(entry->stream_of && entry->math_of)) ci_tell_handle(thread, frame);
  /* What is on the stack is arguments, or nothing: where the memory ends, they end. */
  frame->above = ci_words_at(frame->sp + 8, entry->above, frame->sp);
  __u64 payload = taped ? ci_tape_enter(frame) : 0;
  if (entry->launch && plan.handle_arg < CB_MAX_ARGS)
    send_name(thread, argument(frame, plan.handle_arg), frame->sp);
  if (plan.returns) keep_returned(frame);

  __u64 stack = entry->stack ? ci_stack_number(thread) : 0;
  __u32 most = sizeof(struct cb_head) + CB_ENTRY_WORDS * 8 + sizeof(payload) + sizeof(stack);
  if (entry->reads[0].kind != CB_READ_NOTHING) most += CB_LONG_STRING;
  struct cb_head* head = ci_reserve(thread, most, CB_DROPPED_ENTRY);
  if (!head) return !plan.entry_only;
  __u64* args = (__u64*)(head + 1);
  for (unsigned i = 0; i < plan.nargs; i++) args[i] = argument(frame, i);
  struct extra extra = read_rows(frame, args, plan.nargs);
  if (unlikely(payload)) append(args, plan.nargs, &extra, payload, CB_PAYLOAD);
  if (stack) append(args, plan.nargs, &extra, stack, CB_STACK_KNOWN);
  ci_fill_head(head, thread, CB_ENTRY, ci_now());
  head->sp = (__u32)frame->sp;
  head->function = plan.function;
  head->flags = extra.flags;
  head->nargs = plan.nargs;
  head->struct_size = (__u8)extra.struct_size;
  head->string_size = (__u16)extra.string_size;
  ci_commit(thread, (__u32)sizeof(*head) + plan.nargs * 8u + extra.struct_size + extra.string_size +
                        extra.appended);
  if (unlikely(plan.holder)) ci_record_holder(thread, frame);
  return !plan.entry_only;
}

/* Reads the array that the call has filled in. Returns how many words. */
static __u32 read_array(const struct ci_frame* frame, __u64* words, __u8* flags) {
  if (!frame->array.from) return 0;
  if (ci_read(words, frame->array.from, frame->array.words * 8, frame->sp))
    return (__u32)frame->array.words;
  *flags |= CB_READ_FAULT;
  return 0;
}

/* Reads what rows say at return, up to the first that fails. Returns how many words. */
static __u32 read_returned(const struct ci_frame* frame, __u64* words, __u8* flags) {
  __u32 count = 0;
  const struct cb_read* read;
  if (frame->entry->reads[0].kind == CB_READ_LIST) return read_array(frame, words, flags);
  for (unsigned i = 0; (read = row(frame->entry, i)); i++) {
    __u64 base = read->base < CB_RETURNED ? 0 : words[read->base - CB_RETURNED];
    if (read->kind == CB_READ_ONLY && (__u32)base != read->size) break;
    if (read->kind != CB_READ_RETURN) continue;
    __u64 from = read->base < CB_RETURNED ? frame->outs[read->to] : pointed_to(read, base);
    words[read->to] = 0;
    if (from && !ci_read(&words[read->to], from, read->size, frame->sp)) {
      *flags |= CB_READ_FAULT;
      break;
    }
    count = read->to + 1u;
  }
  return count;
}

void ci_leave(struct ci_frame* frame) {
  struct cb_plan plan = frame->entry->plan;
  if (unlikely(ci_tape() != NULL)) ci_tape_leave(frame);
  struct ci_thread* thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_RETURN);
  if (!thread) return;
  __u64 ended = ci_now(); /* reading what the call wrote takes time, too */
  struct cb_head* head =
      ci_reserve(thread, sizeof(struct cb_head) + CB_MAX_LISTED * 8, CB_DROPPED_RETURN);
  if (!head) return;
  ci_fill_head(head, thread, CB_RETURN, ended);
  head->sp = (__u32)frame->sp;
  head->function = plan.function;
  head->result = (__s32)frame->result;
  __u32 words = 0;
  if (plan.returns && (head->result == 0 || (__u32)head->result == plan.pending))
    words = read_returned(frame, (__u64*)(head + 1), &head->flags);
  ci_commit(thread, (__u32)sizeof(*head) + words * 8);
  ci_fetch_next(thread);
}
