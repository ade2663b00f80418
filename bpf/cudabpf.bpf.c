/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Every program that cudabpf may load: thin sections over the bodies in the headers. The `?` keeps
 * a section from loading until userspace switches it on and sets its attach type. */
#include "call.h"
#include "driver_calls.h"
#include "process.h"
#include "tally.h"
#include "walk.h"

/* Calls seen by sessions: one program runs at both ends. If it returns 1 at the entry, the kernel
 * does not watch the return, so a process that is not traced pays only for the entry. */
extern bool bpf_session_is_return(void) __ksym __weak;
extern bool bpf_session_is_return___with_context(void* ctx) __ksym __weak; /* since Linux 7.0 */

static __always_inline bool at_return(void* ctx) {
  if (bpf_ksym_exists(bpf_session_is_return___with_context))
    return bpf_session_is_return___with_context(ctx);
  return bpf_session_is_return();
}

SEC("?uprobe") int call_session(struct pt_regs* ctx) {
  return at_return(ctx) ? plain_return(ctx) : !plain_entry(ctx, true);
}
SEC("?uprobe") int call_rich_session(struct pt_regs* ctx) {
  if (!at_return(ctx)) return !rich_entry(ctx, true);
  return plan_of(ctx).returns ? out_return(ctx) : plain_return(ctx);
}
SEC("?uprobe") int call_launch_session(struct pt_regs* ctx) {
  return at_return(ctx) ? plain_return(ctx) : !launch_entry(ctx, true);
}

/* The same if the kernel has no sessions: by uprobe_multi, else by one link per function. */
SEC("?uprobe") int call_entry(struct pt_regs* ctx) { return plain_entry(ctx, false), 0; }
SEC("?uprobe") int call_rich_entry(struct pt_regs* ctx) { return rich_entry(ctx, false), 0; }
SEC("?uprobe") int call_launch_entry(struct pt_regs* ctx) { return launch_entry(ctx, false), 0; }
SEC("?uretprobe") int call_return(struct pt_regs* ctx) { return plain_return(ctx); }
SEC("?uretprobe") int call_out_return(struct pt_regs* ctx) { return out_return(ctx); }

/* USDT probes, which have no return. */
SEC("?uprobe") int static_probe(struct pt_regs* ctx) { return static_probe_hit(ctx); }

/* Calls that are only counted. */
extern __u64* bpf_session_cookie(void) __ksym __weak;
extern __u64* bpf_session_cookie___with_context(void* ctx) __ksym __weak; /* since Linux 7.0 */

static __always_inline __u64* session_cookie(void* ctx) {
  if (bpf_ksym_exists(bpf_session_cookie___with_context))
    return bpf_session_cookie___with_context(ctx);
  return bpf_session_cookie();
}

SEC("?uprobe") int tally_session(struct pt_regs* ctx) {
  __u64* cookie = session_cookie(ctx);
  return at_return(ctx) ? counted_return(ctx, cookie) : !counted_entry(ctx, cookie);
}
SEC("?uprobe") int tally_entry(struct pt_regs* ctx) { return counted_entry(ctx, 0), 0; }
SEC("?uretprobe") int tally_return(struct pt_regs* ctx) { return counted_return(ctx, 0); }

/* The Python stacks of slow calls. */
SEC("?uprobe") int walk_session(struct pt_regs* ctx) {
  __u64* cookie = session_cookie(ctx);
  return at_return(ctx) ? walk_ends(ctx, cookie) : !walk_begins(ctx, cookie);
}
SEC("?uprobe") int walk_entry(struct pt_regs* ctx) { return walk_begins(ctx, 0), 0; }
SEC("?uretprobe") int walk_return(struct pt_regs* ctx) { return walk_ends(ctx, 0); }
SEC("?uprobe") int code_freed(struct pt_regs* ctx) { return code_is_freed(ctx); }

/* System calls. A program may read no more arguments than its tracepoint has. */
SEC("?tracepoint") int driver_ioctl(struct trace_event_raw_sys_enter* ctx) {
  return system_call_begins((struct driver_request){
      .op = CB_IOCTL, .fd = ctx->args[0], .command = ctx->args[1], .argument = ctx->args[2]});
}
SEC("?tracepoint") int driver_open(struct trace_event_raw_sys_enter* ctx) {
  return system_call_begins((struct driver_request){.op = CB_OPEN});
}
SEC("?tracepoint") int driver_close(struct trace_event_raw_sys_enter* ctx) {
  return system_call_begins((struct driver_request){.op = CB_CLOSE, .fd = ctx->args[0]});
}
SEC("?tracepoint") int driver_mmap(struct trace_event_raw_sys_enter* ctx) {
  return system_call_begins(
      (struct driver_request){.op = CB_MMAP, .fd = ctx->args[4], .argument = ctx->args[1]});
}
SEC("?tracepoint") int driver_poll(struct trace_event_raw_sys_enter* ctx) {
  return system_call_begins(
      (struct driver_request){.op = CB_POLL, .argument = ctx->args[0], .count = ctx->args[1]});
}
SEC("?tracepoint") int driver_exit(struct trace_event_raw_sys_exit* ctx) {
  return system_call_ends(ctx, bpf_get_attach_cookie(ctx));
}

/* The driver's own functions; the cookie is the operation. */
SEC("?kprobe") int driver_function(struct pt_regs* ctx) {
  struct driver_arguments with = {{PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx)}};
  return function_begins(with, bpf_get_attach_cookie(ctx));
}
SEC("?kretprobe") int driver_function_return(struct pt_regs* ctx) {
  return function_ends(PT_REGS_RC(ctx), bpf_get_attach_cookie(ctx));
}
/* The same if the kernel knows the functions' types. Userspace loads a copy for each function. */
SEC("?fentry") int driver_function_entered(__u64* ctx) {
  struct driver_arguments with = {};
  for (int i = 0; i < 3; i++) bpf_get_func_arg(ctx, i, &with.word[i]); /* as many as it has */
  return function_begins(with, bpf_get_attach_cookie(ctx));
}
SEC("?fexit") int driver_function_left(__u64* ctx) {
  __u64 result = 0;
  bpf_get_func_ret(ctx, &result);
  return function_ends(result, bpf_get_attach_cookie(ctx));
}

SEC("?tracepoint") int driver_xid(void* ctx) { return xid_reported(ctx); }

SEC("?raw_tp/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct* parent, struct task_struct* child) {
  return on_fork(parent, child);
}
SEC("?raw_tp/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct* task) { return on_exec(task); }
SEC("?raw_tp/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct* task) { return on_exit(task); }

char LICENSE[] SEC("license") = "Dual BSD/GPL";
