/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A CUDA call's two records. The same bodies serve every function: its plan says what to read. */
#ifndef CUDABPF_CALL_H
#define CUDABPF_CALL_H

#include "process.h"
#include "reads.h"

#if defined(__TARGET_ARCH_x86)
#define REGISTER_ARGS 6
#define STACK_ARGS_AT 8 /* above the return address */
#define RETURN_POPS 8   /* at the return, sp is past the return address */
#elif defined(__TARGET_ARCH_arm64)
#define REGISTER_ARGS 8
#define STACK_ARGS_AT 0
#define RETURN_POPS 0
#endif

static __u64 names_sent[CB_NAME_SLOTS];
/* Incremented when a process's handles may be reused, which invalidates its cached names. Processes
 * whose pids collide here share an epoch, harmlessly. */
static __u32 names_epochs[CB_NAME_EPOCHS];

static __always_inline __u32* names_epoch(__u32 pid) {
  return &names_epochs[index_of(pid, CB_NAME_EPOCHS)];
}

/* Set once a process begins a capture. They stay: if another has the same one, more of its calls
 * are recorded than is necessary. */
static __u8 capture_marks[CB_CAPTURE_MARKS];

static __always_inline __u8* capture_mark(__u32 pid) {
  return &capture_marks[index_of(pid, CB_CAPTURE_MARKS)];
}

struct call_record {
  struct cb_head head;
  __u64 args[CB_PLAIN_ARGS];
};
struct long_record {
  struct cb_head head;
  __u64 args[CB_PLAIN_ARGS];
  char string[CB_LONG_STRING];
};

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

/* Returns how many words were read: only those in registers if the stack is unreadable. `on_stack`:
 * as many bytes are read from there, if any. */
static __always_inline __u64 read_args(struct pt_regs* ctx, __u64* args, __u64 nargs,
                                       __u64 on_stack) {
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
      read_user(args + REGISTER_ARGS, on_stack, (void*)(PT_REGS_SP(ctx) + STACK_ARGS_AT)))
    return REGISTER_ARGS;
  return nargs;
}

/* Reads the arguments of a call that has at most CB_PLAIN_ARGS. */
static __always_inline __u64 read_plain_args(struct pt_regs* ctx, __u64* args, __u64 nargs) {
  nargs = read_args(ctx, args, nargs, (CB_PLAIN_ARGS - REGISTER_ARGS) * sizeof(__u64));
  return at_most(nargs, CB_PLAIN_ARGS);
}

/* A signal handler on its own stack (sigaltstack) may interrupt a call and make another one at a
 * higher address. If the kernel watched that one's return, it would assume that longjmp had left
 * the interrupted call, which lies lower, forget its return address, and kill the program with
 * SIGILL when that call returns. */
__noinline int return_at_would_kill(__u64 sp) {
  struct task_struct* task = bpf_get_current_task_btf();
  if (sp - task->sas_ss_sp - 1 >= task->sas_ss_size) return false; /* not on it, or there is none */
  unsigned long interrupted = BPF_CORE_READ(task, utask, return_instances, stack);
  return interrupted && interrupted <= sp;
}
static __always_inline bool return_would_kill(struct pt_regs* ctx) {
  return return_at_would_kill(PT_REGS_SP(ctx));
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

/* Sends the kernel's name once per handle: for a handle that was sent already, a launch costs one
 * load and one compare. */
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
  record = reserve(sizeof(*record), ids.tid, CB_DROPPED_NAME);
  if (!record) return;
  __builtin_memset(&record->name, 0, sizeof(record->name));
  fill_head(&record->name.head, ids, CB_NAME);
  record->name.head.ts = bpf_ktime_get_ns();
  record->name.handle = handle;
  long size = -1;
  if (readable) size = bpf_probe_read_user_str(record->string, sizeof(record->string), at);
  if (size > 0) record->name.head.string_size = size;
  if (was_cut(size, at)) record->name.head.flags = CB_STRING_CUT;
  submit(record);
  *slot = key;
}

static __always_inline void emit_plain_entry(struct pt_regs* ctx, struct ids ids,
                                             struct cb_plan plan, __u64 nargs, bool unseen) {
  struct call_record record;
  __builtin_memset(&record, 0, sizeof(record));
  nargs = read_plain_args(ctx, record.args, nargs);
  fill_entry(&record.head, ctx, ids, plan, nargs, unseen);
  emit(&record, sizeof(record.head) + nargs * sizeof(__u64), ids.tid, CB_DROPPED_ENTRY);
}

/* The entry bodies return whether the call's return is wanted; that of a call that is not recorded
 * is not. Only a session's entry can decline it. */

/* Entry of a function whose arguments are plain words. */
static __always_inline bool plain_entry(struct pt_regs* ctx, bool session) {
  struct ids ids = current_ids();
  if (!selected(ids)) return false;
  struct cb_plan plan = plan_of(ctx);
  bool unseen = session && return_would_kill(ctx);
  emit_plain_entry(ctx, ids, plan, plan.nargs, unseen);
  return !plan.entry_only && !unseen;
}

static __always_inline void emit_with_long_string(struct rich_record* shorter, const void* string) {
  struct long_record* record = reserve(sizeof(*record), shorter->head.tid, CB_DROPPED_ENTRY);
  if (!record) return;
  record->head = shorter->head;
  record->head.nargs = CB_PLAIN_ARGS; /* the string's place is fixed here */
  __builtin_memcpy(record->args, shorter->words, sizeof(record->args));
  long size = bpf_probe_read_user_str(record->string, sizeof(record->string), string);
  if (size < 0) {
    record->head.flags |= CB_READ_FAULT;
    size = 0;
  }
  if (was_cut(size, string)) record->head.flags |= CB_STRING_CUT;
  record->head.string_size = size;
  submit(record);
}

/* The string that the last row reads; no record is left to emit if it is a long one. */
static __always_inline bool read_string(struct rich_record* record, __u64 row) {
  const void* string = (const void*)address_of_row(record, row);
  long size = read_user_string(record->words + at_most(record->head.nargs, CB_PLAIN_ARGS),
                               CB_SHORT_STRING, string);
  if (size == CB_SHORT_STRING) {
    emit_with_long_string(record, string);
    return false;
  }
  if (size < 0) {
    record->head.flags |= CB_READ_FAULT;
    size = 0;
  }
  record->head.string_size = size;
  return true;
}

/* From where an allocation was asked for. Allocations are rare: this is not inlined, so that the
 * verifier checks it once, and the stack of calls is not copied where it is not wanted. These
 * records are large: in a ring that is half full, the room is for calls. */
__noinline int record_caller(__u64 pid_tid, __u64 sp, __u64 bp) {
#if defined(__TARGET_ARCH_x86)
  struct ids ids = {.pid = pid_tid >> 32, .tid = (__u32)pid_tid};
  if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
      bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2) {
    count(CB_ENTERED);
    count(CB_DROPPED_HOLDER);
    return 0;
  }
  struct cb_caller* record = reserve(sizeof(*record), ids.tid, CB_DROPPED_HOLDER);
  if (!record) return 0;
  __builtin_memset(record, 0, sizeof(*record) - CB_CALLER_STACK);
  fill_head(&record->head, ids, CB_CALLER);
  record->head.ts = bpf_ktime_get_ns();
  record->head.sp = (__u32)sp;
  record->sp = sp + STACK_ARGS_AT;
  record->bp = bp;
  bpf_probe_read_user(&record->ip, sizeof(record->ip), (void*)sp);
  for (int i = 0; i < CB_CALLER_STACK / CB_CALLER_PART; i++) {
    __u8* to = record->stack + i * CB_CALLER_PART;
    if (bpf_probe_read_user(to, CB_CALLER_PART, (void*)(record->sp + i * CB_CALLER_PART))) break;
    record->size += CB_CALLER_PART;
  }
  submit(record);
#endif
  return 0;
}

/* Entry of a function that records more than a few words, at entry or at return. */
static __always_inline bool rich_entry(struct pt_regs* ctx, bool session) {
  struct ids ids = current_ids();
  if (!selected(ids)) return false;
  struct cb_plan plan = plan_of(ctx);
  bool unseen = session && return_would_kill(ctx);
  struct rich_record record;
  __builtin_memset(&record, 0, sizeof(record));
  __u64 on_stack = at_most((plan.nargs - REGISTER_ARGS) * sizeof(__u64),
                           (CB_MAX_ARGS - REGISTER_ARGS) * sizeof(__u64));
  __u64 nargs = at_most(read_args(ctx, record.words, plan.nargs, on_stack), CB_MAX_ARGS);
  if (plan.forgets_names) __sync_fetch_and_add(names_epoch(ids.pid), 1);
  if (plan.begins_capture) *capture_mark(ids.pid) = 1;
  fill_entry(&record.head, ctx, ids, plan, nargs, unseen);

  if (nargs < plan.nargs) plan.reads = 0;
  if (plan.returns && plan.reads && !unseen)
    keep_returned(&record, plan.reads, call_key(ids.tid, record.head.sp));
  __u64 stop = plan.reads ? read_rows(&record, plan.reads) : 0;
  for (int i = 0; i < CB_MAX_READS && stop >> 32; i++) {
    if (!fault_in(address_of_row(&record, stop & (READ_STOPS - 1)), stop >> 32)) break;
    stop = read_rows(&record, stop & (READ_STOPS - 1));
  }
  if (stop >> 32) record.head.flags |= CB_READ_FAULT;
  if (!stop || stop >> 32 || read_string(&record, stop & (READ_STOPS - 1))) {
    __u64 end = nargs * sizeof(__u64) + record.head.struct_size + record.head.string_size;
    emit(&record, sizeof(record.head) + at_most(end, sizeof(record.words)), ids.tid,
         CB_DROPPED_ENTRY);
  }
  if (plan.holder) record_caller((__u64)ids.pid << 32 | ids.tid, PT_REGS_SP(ctx), PT_REGS_FP(ctx));
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
  __u64 nargs = read_plain_args(ctx, record.call.args, plan.nargs);
  if (plan.handle_arg < 2) send_name(ids, record.call.args[at_most(plan.handle_arg, 1)]);
  fill_entry(&record.call.head, ctx, ids, plan, nargs, unseen);
  __u64 extra = 0;
  if (plan.config_arg < 2) {
    extra = at_most(plan.config_words * 8, sizeof(record.config));
    if (read_user(record.call.args + nargs, extra,
                  (void*)record.call.args[at_most(plan.config_arg, 1)])) {
      record.call.head.flags |= CB_READ_FAULT;
      extra = 0;
    }
    record.call.head.struct_size = extra;
  }
  emit(&record, sizeof(struct cb_head) + nargs * sizeof(__u64) + extra, ids.tid, CB_DROPPED_ENTRY);
  return !plan.entry_only && !unseen;
}

/* A USDT probe, somewhere in a function: all that is recorded of it is where its rows say. */
static __always_inline int static_probe_hit(struct pt_regs* ctx) {
  struct ids ids = current_ids();
  if (!selected(ids)) return 0;
  struct cb_plan plan = plan_of(ctx);
  struct call_record record;
  __builtin_memset(&record, 0, sizeof(record));
  __u64 nargs = 0;
  for (; nargs < CB_MAX_READS; nargs++) {
    const struct cb_read* read = read_of(plan, nargs);
    __u64 value;
    if (read->kind == CB_READ_NOTHING || !read_placed(ctx, read, &value)) break;
    record.args[at_most(nargs, CB_MAX_READS - 1)] = value;
  }
  fill_entry(&record.head, ctx, ids, plan, nargs, false);
  emit(&record, sizeof(record.head) + at_most(nargs, CB_MAX_READS) * sizeof(__u64), ids.tid,
       CB_DROPPED_ENTRY);
  return 0;
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

/* Emits a return with an array, for which the stack has no room: it is read into the ring, and what
 * it leaves of the record is 0. False: it cannot be read. */
static __always_inline bool emit_with_array(const struct cb_head* head,
                                            const struct out_slot* kept) {
  __u64 from = kept->array.from, size = kept->array.size;
  char touched; /* faulted in before the ring's space is held: it lies on two pages at most */
  if (size && (read_user(&touched, 1, (const void*)from) ||
               read_user(&touched, 1, (const void*)(from + size - 1))))
    return false;
  struct {
    struct cb_head head;
    __u64 words[CB_MAX_LISTED];
  } * record;
  record = reserve(sizeof(*record), head->tid, CB_DROPPED_RETURN);
  if (!record) return true;
  record->head = *head;
  __builtin_memset(record->words, 0, sizeof(record->words));
  if (bpf_probe_read_user(record->words, at_most(size, sizeof(record->words)), (const void*)from))
    record->head.flags |= CB_READ_FAULT;
  submit(record);
  return true;
}

/* Return of a function with rows that are read at return. */
static __always_inline int out_return(struct pt_regs* ctx) {
  struct ids ids = current_ids();
  if (!is_traced(ids.pid)) return 0;
  struct cb_plan plan = plan_of(ctx);
  struct {
    struct cb_head head;
    __u64 words[CB_MAX_RETURNED];
  } record;
  __builtin_memset(&record, 0, sizeof(record));
  fill_return(&record.head, ctx, ids, plan);
  struct out_slot* kept = kept_outs(call_key(ids.tid, record.head.sp));
  __u64 words = 0;
  if (kept && (!record.head.result || (__u32)record.head.result == plan.pending)) {
    if (read_of(plan, 0)->kind != CB_READ_LIST) {
      words = read_returned(plan, kept, record.words, &record.head.flags);
    } else if (emit_with_array(&record.head, kept)) {
      kept->key = 0;
      return 0;
    } else {
      record.head.flags |= CB_READ_FAULT;
    }
  }
  if (kept)
    kept->key = 0;
  else
    record.head.flags |= CB_OUT_LOST;
  emit(&record, sizeof(record.head) + words * sizeof(__u64), ids.tid, CB_DROPPED_RETURN);
  return 0;
}

#endif
