/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls a function of which only the beginning is there, and writes down all registers as they are
 * behind it, and again when it has returned. See cpu.hpp; struct cpu_state is laid out alike.
 */
#define GENERAL 128 /* rax rcx rdx rbx rsp rbp rsi rdi r8 … r15 */
#define RSP 32
#define FLAGS GENERAL+16*16

  .macro save_general to
  mov %rax, 0+\to(%rip)
  mov %rcx, 8+\to(%rip)
  mov %rdx, 16+\to(%rip)
  mov %rbx, 24+\to(%rip)
  mov %rsp, RSP+\to(%rip)
  mov %rbp, 40+\to(%rip)
  mov %rsi, 48+\to(%rip)
  mov %rdi, 56+\to(%rip)
  mov %r8, 64+\to(%rip)
  mov %r9, 72+\to(%rip)
  mov %r10, 80+\to(%rip)
  mov %r11, 88+\to(%rip)
  mov %r12, 96+\to(%rip)
  mov %r13, 104+\to(%rip)
  mov %r14, 112+\to(%rip)
  mov %r15, 120+\to(%rip)
  .endm

  .macro load_general from
  mov 0+\from(%rip), %rax
  mov 8+\from(%rip), %rcx
  mov 16+\from(%rip), %rdx
  mov 24+\from(%rip), %rbx
  mov RSP+\from(%rip), %rsp
  mov 40+\from(%rip), %rbp
  mov 48+\from(%rip), %rsi
  mov 56+\from(%rip), %rdi
  mov 64+\from(%rip), %r8
  mov 72+\from(%rip), %r9
  mov 80+\from(%rip), %r10
  mov 88+\from(%rip), %r11
  mov 96+\from(%rip), %r12
  mov 104+\from(%rip), %r13
  mov 112+\from(%rip), %r14
  mov 120+\from(%rip), %r15
  .endm

  .macro each_vector do, state
  .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
  \do \number, \state
  .endr
  .endm
  .macro save_vector number, to
  movups %xmm\number, GENERAL+16*\number+\to(%rip)
  .endm
  .macro load_vector number, from
  movups GENERAL+16*\number+\from(%rip), %xmm\number
  .endm

  .text
  .globl cpu_call
  .type cpu_call, @function
cpu_call:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  sub $8, %rsp
  mov %rsp, own_sp(%rip)
  each_vector load_vector, cpu_before
  pushq FLAGS+cpu_before(%rip)
  popfq
  load_general cpu_before
  call *cpu_function(%rip)
  save_general cpu_after
  mov own_sp(%rip), %rsp
  cld
  lea 8(%rsp), %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
  .size cpu_call, .-cpu_call

/* Behind the beginning of the function. What follows takes the place of the rest of it: it puts
 * back what a function has to put back, and spoils everything else. */
  .globl cpu_behind
  .type cpu_behind, @function
cpu_behind:
  save_general cpu_reached
  mov own_sp(%rip), %rsp
  pushfq
  popq FLAGS+cpu_reached(%rip)
  each_vector save_vector, cpu_reached
  cld
  call cpu_look
  load_general cpu_spoilt
  each_vector load_vector, cpu_spoilt
  mov 24+cpu_before(%rip), %rbx
  mov 96+cpu_before(%rip), %r12
  mov 104+cpu_before(%rip), %r13
  mov 112+cpu_before(%rip), %r14
  mov 120+cpu_before(%rip), %r15
  mov cpu_entry_bp(%rip), %rbp
  mov cpu_entry_sp(%rip), %rsp
  ret
  .size cpu_behind, .-cpu_behind

  .local own_sp
  .comm own_sp, 8, 8
  .section .note.GNU-stack, "", @progbits
