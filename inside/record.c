/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A call's two records, made as bpf/call.h makes them in the kernel. */
#include "recording.h"

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

/* Reads the struct or array that the plan names; the number of its bytes. */
static __u32 read_struct(const struct ci_frame* frame, struct cb_plan plan, void* to, __u8* flags) {
  __u64 size = plan.struct_words * 8ULL;
  if (plan.count_arg < CB_MAX_ARGS) {
    __u64 words = argument(frame, plan.count_arg);
    if (words < size / 8) size = words * 8;
  }
  if (size > CB_MAX_STRUCT) size = CB_MAX_STRUCT;
  if (ci_read(to, argument(frame, plan.struct_arg), size, frame->sp)) return (__u32)size;
  *flags |= CB_READ_FAULT;
  return 0;
}

static __u32 read_string(const struct ci_frame* frame, struct cb_plan plan, char* to, __u8* flags) {
  __u32 size = ci_read_string(to, argument(frame, plan.string_arg), CB_LONG_STRING);
  if (!size) *flags |= CB_READ_FAULT;
  if (size == CB_LONG_STRING && to[size - 1]) {
    to[size - 1] = 0;
    *flags |= CB_STRING_CUT;
  }
  return size;
}

bool ci_enter(struct ci_frame* frame) {
  const struct ci_entry* entry = frame->entry;
  struct cb_plan plan = entry->plan;
  struct ci_thread* thread = ci_recording_thread(CI_ALL, CB_DROPPED_ENTRY);
  /* Handles are new for those threads, too, whose calls are recorded. */
  if (unlikely(plan.forgets_names) && ci_state() == CI_TRACED)
    __atomic_fetch_add(&ci_process->names_epoch, 1, __ATOMIC_RELAXED);
  if (!thread) return false;
  /* What is on the stack is arguments, or nothing: where the memory ends, so do they. */
  frame->above = ci_words_at(frame->sp + 8, entry->above, frame->sp);
  if (entry->launch && plan.handle_arg < CB_MAX_ARGS)
    send_name(thread, argument(frame, plan.handle_arg), frame->sp);
  for (unsigned i = 0; i < CB_MAX_OUTS; i++) frame->outs[i] = 0;
  if (plan.out0 < CB_MAX_ARGS) frame->outs[0] = argument(frame, plan.out0);
  if (plan.out1 < CB_MAX_ARGS) frame->outs[1] = argument(frame, plan.out1);
  if (plan.makes_body) frame->outs[1] = argument(frame, plan.struct_arg);

  __u32 most = sizeof(struct cb_head) + CB_MAX_ARGS * 8;
  if (plan.struct_arg < CB_MAX_ARGS)
    most += CB_MAX_STRUCT;
  else if (plan.string_arg < CB_MAX_ARGS)
    most += CB_LONG_STRING;
  struct cb_head* head = ci_reserve(thread, most, CB_DROPPED_ENTRY);
  if (!head) return !plan.entry_only;
  __u64* args = (__u64*)(head + 1);
  for (unsigned i = 0; i < plan.nargs; i++) args[i] = argument(frame, i);
  __u8 flags = 0;
  __u32 struct_size = 0, string_size = 0;
  if (plan.struct_arg < CB_MAX_ARGS)
    struct_size = read_struct(frame, plan, args + plan.nargs, &flags);
  else if (plan.string_arg < CB_MAX_ARGS)
    string_size = read_string(frame, plan, (char*)(args + plan.nargs), &flags);
  ci_fill_head(head, thread, CB_ENTRY, ci_now());
  head->sp = (__u32)frame->sp;
  head->function = plan.function;
  head->flags = flags;
  head->nargs = plan.nargs;
  head->struct_size = (__u8)struct_size;
  head->string_size = (__u16)string_size;
  ci_commit(thread, (__u32)sizeof(*head) + plan.nargs * 8u + struct_size + string_size);
  return !plan.entry_only;
}

/* A null pointer asks for nothing, so it is not a fault. */
static bool read_out(__u64* to, __u64 address, bool narrow, __u64 sp) {
  *to = 0;
  return !address || ci_read(to, address, narrow ? 4 : 8, sp);
}

/* The first body of a conditional node, which the call has made; false: the node is none. */
static bool read_body(__u64* to, __u64 parameters, __u8* flags, __u64 sp) {
  __u32 type = 0;
  __u64 bodies = 0;
  if (!ci_read(&type, parameters, sizeof(type), sp) || type != CB_NODE_CONDITIONAL) return false;
  if (ci_read(&bodies, parameters + CB_NODE_BODIES_AT, sizeof(bodies), sp) &&
      ci_read(to, bodies, sizeof(*to), sp))
    return true;
  *flags |= CB_READ_FAULT;
  return false;
}

void ci_leave(struct ci_frame* frame) {
  struct cb_plan plan = frame->entry->plan;
  struct ci_thread* thread = ci_recording_thread(CI_RETURNS, CB_DROPPED_RETURN);
  if (!thread) return;
  __u64 ended = ci_now(); /* reading what it wrote takes time, too */
  struct cb_head* head =
      ci_reserve(thread, sizeof(struct cb_head) + CB_MAX_OUTS * 8, CB_DROPPED_RETURN);
  if (!head) return;
  ci_fill_head(head, thread, CB_RETURN, ended);
  head->sp = (__u32)frame->sp;
  head->function = plan.function;
  head->result = (__s32)frame->result;
  __u32 outs = 0;
  if (plan.out0 < CB_MAX_ARGS && head->result == 0) {
    __u64* out = (__u64*)(head + 1);
    if (!read_out(&out[0], frame->outs[0], plan.out0_narrow, frame->sp)) {
      head->flags |= CB_READ_FAULT;
    } else if (outs = 1, plan.makes_body) {
      outs += read_body(&out[1], frame->outs[1], &head->flags, frame->sp);
    } else if (plan.out1 < CB_MAX_ARGS) {
      if (!read_out(&out[1], frame->outs[1], plan.out1_narrow, frame->sp))
        head->flags |= CB_READ_FAULT;
      else
        outs = 2;
    }
  }
  ci_commit(thread, (__u32)sizeof(*head) + outs * 8);
}
