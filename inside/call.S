/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What stands between a caller and a patched function. A stub jumps here with the function's entry
 * (struct ci_entry) in r11 and everything else as the caller left it.
 *
 * The function is called, not jumped to, so that its return is seen and the stack stays one that
 * unwinders understand: this frame has a frame pointer and CFI. The words above the return address
 * are handed on for the arguments that are not in registers: as many as ci_enter says.
 */
#define FRAME 240 /* struct ci_frame, and the vector registers that arguments may be in */
#define ENTRY 48
#define SP 56
#define RESULT 64
#define ABOVE 104
#define VECTORS 112
#define USUAL_ABOVE 14 /* CI_USUAL_ABOVE: nearly every function's */

  .text
  .p2align 4
  .globl ci_call
  .hidden ci_call
  .type ci_call, @function
ci_call:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  sub $FRAME, %rsp
  mov %rdi, 0(%rsp)
  mov %rsi, 8(%rsp)
  mov %rdx, 16(%rsp)
  mov %rcx, 24(%rsp)
  mov %r8, 32(%rsp)
  mov %r9, 40(%rsp)
  mov %r11, ENTRY(%rsp)
  lea 8(%rbp), %rax
  mov %rax, SP(%rsp)
  movups %xmm0, VECTORS+0(%rsp)
  movups %xmm1, VECTORS+16(%rsp)
  movups %xmm2, VECTORS+32(%rsp)
  movups %xmm3, VECTORS+48(%rsp)
  movups %xmm4, VECTORS+64(%rsp)
  movups %xmm5, VECTORS+80(%rsp)
  movups %xmm6, VECTORS+96(%rsp)
  movups %xmm7, VECTORS+112(%rsp)
  mov %rsp, %rdi
  call ci_enter
  mov 0(%rsp), %rdi
  mov 8(%rsp), %rsi
  mov 16(%rsp), %rdx
  mov 24(%rsp), %rcx
  mov 32(%rsp), %r8
  mov 40(%rsp), %r9
  mov ENTRY(%rsp), %r11
  movups VECTORS+0(%rsp), %xmm0
  movups VECTORS+16(%rsp), %xmm1
  movups VECTORS+32(%rsp), %xmm2
  movups VECTORS+48(%rsp), %xmm3
  movups VECTORS+64(%rsp), %xmm4
  movups VECTORS+80(%rsp), %xmm5
  movups VECTORS+96(%rsp), %xmm6
  movups VECTORS+112(%rsp), %xmm7
  test %al, %al
  jz 1f
  cmpl $USUAL_ABOVE, ABOVE(%rsp)
  jne 2f
  pushq 120(%rbp)
  pushq 112(%rbp)
  pushq 104(%rbp)
  pushq 96(%rbp)
  pushq 88(%rbp)
  pushq 80(%rbp)
  pushq 72(%rbp)
  pushq 64(%rbp)
  pushq 56(%rbp)
  pushq 48(%rbp)
  pushq 40(%rbp)
  pushq 32(%rbp)
  pushq 24(%rbp)
  pushq 16(%rbp)
3:
  call *(%r11)
  mov %rax, RESULT-FRAME(%rbp)
  lea -FRAME(%rbp), %rdi
  call ci_leave
  mov RESULT-FRAME(%rbp), %rax
  leave
  .cfi_remember_state
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  ret
  .cfi_restore_state
2: /* rax and r10 are free here */
  mov ABOVE-FRAME(%rbp), %eax
  lea 1(%rax), %r10
  and $-2, %r10 /* the stack stays aligned */
  shl $3, %r10
  sub %r10, %rsp
4:
  sub $1, %eax
  js 3b
  mov 16(%rbp,%rax,8), %r10
  mov %r10, (%rsp,%rax,8)
  jmp 4b
1: /* its return is not wanted: leave as if nothing had been here */
  leave
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  jmp *(%r11)
  .cfi_endproc
  .size ci_call, .-ci_call

  .section .note.GNU-stack, "", @progbits
