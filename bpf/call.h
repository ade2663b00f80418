/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A CUDA call's two records. The same bodies serve every function: its plan says what to read. */
#ifndef CUDABPF_CALL_H
#define CUDABPF_CALL_H

#include "emit.h"
#include "process.h"

#if defined(__TARGET_ARCH_x86)
#define REGISTER_ARGS 6
#define STACK_ARGS_AT 8 /* above the return address */
#define RETURN_POPS 8   /* at the return, sp is past the return address */
#elif defined(__TARGET_ARCH_arm64)
#define REGISTER_ARGS 8
#define STACK_ARGS_AT 0
#define RETURN_POPS 0
#endif

/* Keeps out-pointers between entry and return; launches have none. A small set-associative table: a
 * hash map's update and delete would cost more than the records. A call claims a slot with its key,
 * so it can never get another's pointers. If all ways are taken (threads killed in mid-call leave
 * theirs behind), the call goes without, and its return record says so. */
#define OUT_SETS 4096
#define OUT_WAYS 4
struct out_slot {
  __u64 key; /* 0: free */
  __u64 address[CB_MAX_OUTS];
};
static struct out_slot pending_outs[OUT_SETS][OUT_WAYS];

static __u64 names_sent[CB_NAME_SLOTS];
/* Incremented when a process's handles may be reused, which invalidates its cached names. Processes
 * whose pids collide here share an epoch, harmlessly. */
static __u32 names_epochs[CB_NAME_EPOCHS];

static __always_inline __u32* names_epoch(__u32 pid) {
  return &names_epochs[index_of(pid, CB_NAME_EPOCHS)];
}

static __always_inline __u64 call_key(__u32 tid, __u32 sp) { return (__u64)tid << 32 | sp; }

static __always_inline struct out_slot* out_set(__u64 key) {
  return pending_outs[index_of(key * CB_HASH_FACTOR >> 52, OUT_SETS)];
}

static __always_inline void keep_outs(__u64 key, __u64 out0, __u64 out1) {
  struct out_slot* set = out_set(key);
  for (int way = 0; way < OUT_WAYS; way++) {
    struct out_slot* slot = &set[way];
    __u64 owner = slot->key;
    if (owner == key || (!owner && !__sync_val_compare_and_swap(&slot->key, 0, key))) {
      slot->address[0] = out0;
      slot->address[1] = out1;
      return;
    }
  }
}

static __always_inline struct out_slot* kept_outs(__u64 key) {
  struct out_slot* set = out_set(key);
  for (int way = 0; way < OUT_WAYS; way++)
    if (set[way].key == key) return &set[way];
  return 0;
}

struct call_record {
  struct cb_head head;
  __u64 args[CB_MAX_ARGS];
};
struct rich_record {
  struct cb_head head;
  __u64 args[CB_MAX_ARGS];
  __u8 extra[CB_SHORT_STRING];
};
struct long_record {
  struct cb_head head;
  __u64 args[CB_MAX_ARGS];
  char string[CB_LONG_STRING];
};
CB_STATIC_ASSERT(CB_MAX_STRUCT <= CB_SHORT_STRING, "a struct or a string goes into `extra`");

static __always_inline struct cb_plan plan_of(void* ctx) {
  union {
    __u64 cookie;
    struct cb_plan plan;
  } u = {.cookie = bpf_get_attach_cookie(ctx)};
  return u.plan;
}

/* True if this thread's calls are recorded. Adopts a new process that the selection covers. */
static __always_inline bool selected(struct ids ids) {
  if (is_traced(ids.pid)) return true;
  if (!may_be_adopted(ids.pid)) return false;
  if (selection == CB_SELECT_CGROUP &&
      bpf_get_current_ancestor_cgroup_id(selected_cgroup_level) != selected_cgroup)
    return false;
  adopt_current(ids);
  return true;
}

/* Reads the traced program's memory. Pages that were never touched (a name in a library's read-only
 * data) are not resident: the quick read fails there, and only a sleepable program may fault them
 * in. The size must be a constant or come from at_most(): if the compiler spills half a register
 * for the second read, the verifier forgets its bound. */
static __always_inline long read_user(void* to, __u64 size, const void* from) {
  long error = bpf_probe_read_user(to, size, from);
  if (error && can_sleep) error = bpf_copy_from_user(to, size, from);
  return error;
}

static __always_inline long read_user_string(void* to, __u64 size, const char* from) {
  long length = bpf_probe_read_user_str(to, size, from);
  char touched;
  if (length < 0 && can_sleep && !bpf_copy_from_user(&touched, 1, from))
    length = bpf_probe_read_user_str(to, size, from);
  return length;
}

/* Returns how many words were read: only those in registers if the stack is unreadable. */
static __always_inline __u64 read_args(struct pt_regs* ctx, __u64* args, __u64 nargs) {
  args[0] = PT_REGS_PARM1(ctx);
  args[1] = PT_REGS_PARM2(ctx);
  args[2] = PT_REGS_PARM3(ctx);
  args[3] = PT_REGS_PARM4(ctx);
  args[4] = PT_REGS_PARM5(ctx);
#if REGISTER_ARGS == 6
  args[5] = ctx->r9;
#else
  args[5] = PT_REGS_PARM6(ctx);
  args[6] = PT_REGS_PARM7(ctx);
  args[7] = PT_REGS_PARM8(ctx);
#endif
  if (nargs > REGISTER_ARGS &&
      read_user(args + REGISTER_ARGS, (CB_MAX_ARGS - REGISTER_ARGS) * sizeof(__u64),
                (void*)(PT_REGS_SP(ctx) + STACK_ARGS_AT)))
    return REGISTER_ARGS;
  return nargs;
}

/* A signal handler on its own stack (sigaltstack) may interrupt a call and make another one at a
 * higher address. If the kernel watched that one's return, it would assume that longjmp had left
 * the interrupted call, which lies lower, forget its return address, and kill the program with
 * SIGILL when that call returns. */
static __always_inline bool return_would_kill(struct pt_regs* ctx) {
  struct task_struct* task = bpf_get_current_task_btf();
  unsigned long sp = PT_REGS_SP(ctx);
  if (sp - task->sas_ss_sp - 1 >= task->sas_ss_size) return false; /* not on it, or there is none */
  unsigned long interrupted = BPF_CORE_READ(task, utask, return_instances, stack);
  return interrupted && interrupted <= sp;
}

static __always_inline void fill_entry(struct cb_head* head, struct pt_regs* ctx, struct ids ids,
                                       struct cb_plan plan, __u64 nargs, bool return_unseen) {
  fill_head(head, ids, CB_ENTRY);
  head->sp = (__u32)PT_REGS_SP(ctx);
  head->function = plan.function;
  head->flags = nargs < plan.nargs ? CB_READ_FAULT : 0;
  if (return_unseen) head->flags |= CB_RETURN_UNSEEN;
  head->nargs = nargs;
  head->struct_size = 0;
  head->string_size = 0;
  head->ts = bpf_ktime_get_ns();
}

/* True if the string filled the record and went on beyond it. */
static __always_inline bool was_cut(long size, const char* string) {
  char next = 1;
  if (size != CB_LONG_STRING) return false;
  bpf_probe_read_user(&next, sizeof(next), string + CB_LONG_STRING - 1);
  return next != 0;
}

/* Sends the kernel's name once per handle: a launch whose handle has been named costs one load and
 * one compare. */
static __always_inline void send_name(struct ids ids, __u64 handle) {
  __u64 key = cb_name_key(handle, ids.pid, *names_epoch(ids.pid));
  __u64* slot = &names_sent[index_of(CB_NAME_SLOT(key), CB_NAME_SLOTS)];
  if (*slot == key) return;

  const char* at = 0;
  char first; /* faulted in before the ring's space is held */
  bool readable = !read_user(&at, sizeof(at), (void*)(handle + CB_HANDLE_NAME_AT)) &&
                  !read_user(&first, sizeof(first), at);
  struct {
    struct cb_name name;
    char string[CB_LONG_STRING];
  } * record;
  count(CB_ENTERED);
  record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    dropped(ids.tid, CB_DROPPED_NAME);
    return;
  }
  __builtin_memset(&record->name, 0, sizeof(record->name));
  fill_head(&record->name.head, ids, CB_NAME);
  record->name.head.ts = bpf_ktime_get_ns();
  record->name.handle = handle;
  long size = -1;
  if (readable) size = bpf_probe_read_user_str(record->string, sizeof(record->string), at);
  if (size > 0) record->name.head.string_size = size;
  if (was_cut(size, at)) record->name.head.flags = CB_STRING_CUT;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  count(CB_EMITTED);
  *slot = key;
}

/* The entry bodies return whether the call's return is wanted: a call that is not recorded has no
 * need of it. Only a session's entry can decline it. */

/* Entry of a function whose arguments are plain words. */
static __always_inline bool plain_entry(struct pt_regs* ctx, bool session) {
  struct ids ids = current_ids();
  if (!selected(ids)) return false;
  struct cb_plan plan = plan_of(ctx);
  bool unseen = session && return_would_kill(ctx);
  struct call_record record;
  __builtin_memset(&record, 0, sizeof(record));
  __u64 nargs = at_most(read_args(ctx, record.args, plan.nargs), CB_MAX_ARGS);
  fill_entry(&record.head, ctx, ids, plan, nargs, unseen);
  emit(&record, sizeof(record.head) + nargs * sizeof(__u64), ids.tid, CB_DROPPED_ENTRY);
  return !plan.entry_only && !unseen;
}

static __always_inline void emit_with_long_string(struct rich_record* shorter, const void* string) {
  struct long_record* record;
  count(CB_ENTERED);
  record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    dropped(shorter->head.tid, CB_DROPPED_ENTRY);
    return;
  }
  record->head = shorter->head;
  record->head.nargs = CB_MAX_ARGS; /* the string's place is fixed here */
  __builtin_memcpy(record->args, shorter->args, sizeof(record->args));
  long size = bpf_probe_read_user_str(record->string, sizeof(record->string), string);
  if (size < 0) {
    record->head.flags |= CB_READ_FAULT;
    size = 0;
  }
  if (was_cut(size, string)) record->head.flags |= CB_STRING_CUT;
  record->head.string_size = size;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  count(CB_EMITTED);
}

/* Entry of a function with memory to read (string, struct, array) or out-pointers to keep. */
static __always_inline bool rich_entry(struct pt_regs* ctx, bool session) {
  struct ids ids = current_ids();
  if (!selected(ids)) return false;
  struct cb_plan plan = plan_of(ctx);
  bool unseen = session && return_would_kill(ctx);
  struct rich_record record;
  __builtin_memset(&record, 0, sizeof(record));
  __u64 nargs = at_most(read_args(ctx, record.args, plan.nargs), CB_MAX_ARGS);

  if (plan.out0 < CB_MAX_ARGS && !unseen) {
    __u64 second = plan.makes_body ? plan.struct_arg : plan.out1;
    keep_outs(call_key(ids.tid, (__u32)PT_REGS_SP(ctx)),
              record.args[at_most(plan.out0, CB_MAX_ARGS - 1)],
              second < CB_MAX_ARGS ? record.args[at_most(second, CB_MAX_ARGS - 1)] : 0);
  }
  if (plan.forgets_names) __sync_fetch_and_add(names_epoch(ids.pid), 1);

  __u64 extra = 0;
  fill_entry(&record.head, ctx, ids, plan, nargs, unseen);
  __u8* at = (__u8*)(record.args + nargs);
  if (plan.struct_arg < CB_MAX_ARGS) {
    extra = plan.struct_words * 8;
    if (plan.count_arg < CB_MAX_ARGS) {
      __u64 words = record.args[at_most(plan.count_arg, CB_MAX_ARGS - 1)];
      if (words * 8 < extra) extra = words * 8;
    }
    extra = at_most(extra, CB_MAX_STRUCT);
    if (read_user(at, extra, (void*)record.args[at_most(plan.struct_arg, CB_MAX_ARGS - 1)])) {
      record.head.flags |= CB_READ_FAULT;
      extra = 0;
    }
    record.head.struct_size = extra;
  } else if (plan.string_arg < CB_MAX_ARGS) {
    const void* string = (const void*)record.args[at_most(plan.string_arg, CB_MAX_ARGS - 1)];
    long size = read_user_string(at, CB_SHORT_STRING, string);
    if (nargs < plan.nargs && size == CB_SHORT_STRING) size = -1; /* a long record needs all */
    if (size == CB_SHORT_STRING) {
      emit_with_long_string(&record, string);
      return !plan.entry_only && !unseen;
    }
    if (size < 0) {
      record.head.flags |= CB_READ_FAULT;
      size = 0;
    }
    extra = at_most(size, CB_SHORT_STRING - 1);
    record.head.string_size = extra;
  }
  emit(&record, sizeof(record.head) + nargs * sizeof(__u64) + extra, ids.tid, CB_DROPPED_ENTRY);
  return !plan.entry_only && !unseen;
}

/* Entry of a kernel launch: the kernel's name may have to be sent. */
static __always_inline bool launch_entry(struct pt_regs* ctx, bool session) {
  struct ids ids = current_ids();
  if (!selected(ids)) return false;
  struct cb_plan plan = plan_of(ctx);
  bool unseen = session && return_would_kill(ctx);
  struct {
    struct call_record call;
    __u8 config[64];
  } record;
  __builtin_memset(&record, 0, sizeof(record));
  __u64 nargs = at_most(read_args(ctx, record.call.args, plan.nargs), CB_MAX_ARGS);
  if (plan.handle_arg < 2) send_name(ids, record.call.args[at_most(plan.handle_arg, 1)]);
  fill_entry(&record.call.head, ctx, ids, plan, nargs, unseen);
  __u64 extra = 0;
  if (plan.struct_arg < 2) {
    extra = at_most(plan.struct_words * 8, sizeof(record.config));
    if (read_user(record.call.args + nargs, extra,
                  (void*)record.call.args[at_most(plan.struct_arg, 1)])) {
      record.call.head.flags |= CB_READ_FAULT;
      extra = 0;
    }
    record.call.head.struct_size = extra;
  }
  emit(&record, sizeof(struct cb_head) + nargs * sizeof(__u64) + extra, ids.tid, CB_DROPPED_ENTRY);
  return !plan.entry_only && !unseen;
}

static __always_inline void fill_return(struct cb_head* head, struct pt_regs* ctx, struct ids ids,
                                        struct cb_plan plan) {
  head->ts = bpf_ktime_get_ns();
  fill_head(head, ids, CB_RETURN);
  head->sp = (__u32)(PT_REGS_SP(ctx) - RETURN_POPS);
  head->function = plan.function;
  head->flags = 0;
  head->result = (__s32)PT_REGS_RC(ctx);
}

static __always_inline int plain_return(struct pt_regs* ctx) {
  struct ids ids = current_ids();
  if (!is_traced(ids.pid)) return 0;
  struct cb_head head;
  fill_return(&head, ctx, ids, plan_of(ctx));
  emit(&head, sizeof(head), ids.tid, CB_DROPPED_RETURN);
  return 0;
}

/* A null pointer asks for nothing, so it is not a fault. */
static __always_inline long read_out(__u64* to, __u64 address, bool narrow) {
  *to = 0;
  if (!address) return 0;
  return read_user(to, at_most(narrow ? 4 : 8, 8), (void*)address);
}

/* The first body of a conditional node, which the call has made; false: the node is none. */
static __always_inline bool read_body(__u64* to, __u64 parameters, __u8* flags) {
  __u32 type = 0;
  __u64 bodies = 0;
  if (read_user(&type, sizeof(type), (void*)parameters) || type != CB_NODE_CONDITIONAL)
    return false;
  *to = 0;
  if (!read_user(&bodies, sizeof(bodies), (void*)(parameters + CB_NODE_BODIES_AT)) &&
      !read_user(to, sizeof(*to), (void*)bodies))
    return true;
  *flags |= CB_READ_FAULT;
  return false;
}

/* Return of a function with out-pointers. */
static __always_inline int out_return(struct pt_regs* ctx) {
  struct ids ids = current_ids();
  if (!is_traced(ids.pid)) return 0;
  struct cb_plan plan = plan_of(ctx);
  struct {
    struct cb_head head;
    __u64 outs[CB_MAX_OUTS];
  } record;
  __builtin_memset(&record, 0, sizeof(record));
  fill_return(&record.head, ctx, ids, plan);
  struct out_slot* outs = kept_outs(call_key(ids.tid, record.head.sp));
  __u64 size = sizeof(record.head);
  if (outs && record.head.result == 0) {
    if (read_out(&record.outs[0], outs->address[0], plan.out0_narrow)) {
      record.head.flags |= CB_READ_FAULT;
    } else {
      size += sizeof(__u64);
      if (plan.makes_body) {
        if (read_body(&record.outs[1], outs->address[1], &record.head.flags)) size += sizeof(__u64);
      } else if (plan.out1 < CB_MAX_ARGS) {
        if (read_out(&record.outs[1], outs->address[1], plan.out1_narrow))
          record.head.flags |= CB_READ_FAULT;
        else
          size += sizeof(__u64);
      }
    }
  }
  if (outs)
    outs->key = 0;
  else
    record.head.flags |= CB_OUT_LOST;
  emit(&record, size, ids.tid, CB_DROPPED_RETURN);
  return 0;
}

#endif
