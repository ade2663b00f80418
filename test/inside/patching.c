/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The library inside, with the part that records replaced: ci_call calls these two, which look at
 * what they get, and spoil all that a C function may. */
#include "patching.h"

#include "inside.h"

/* Between the frame and the function's entry, as call.S has it. */
#define FRAME 240
#define HANDED_ON ((passing.above + 1) / 2 * 16)

struct passing passing;
__u64 cpu_entry_sp, cpu_entry_bp;

static void spoil(void) {
  __asm__ volatile(
      "mov $0xbad, %%eax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi;"
      "mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11;"
      "movq %%rax, %%xmm0; movq %%rax, %%xmm1; movq %%rax, %%xmm2; movq %%rax, %%xmm3;"
      "movq %%rax, %%xmm4; movq %%rax, %%xmm5; movq %%rax, %%xmm6; movq %%rax, %%xmm7;"
      "movq %%rax, %%xmm8; movq %%rax, %%xmm9; movq %%rax, %%xmm10; movq %%rax, %%xmm11;"
      "movq %%rax, %%xmm12; movq %%rax, %%xmm13; movq %%rax, %%xmm14; movq %%rax, %%xmm15"
      :
      :
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "memory");
}

bool ci_enter(struct ci_frame* frame) {
  passing.entered++;
  passing.sp = frame->sp;
  frame->above = passing.above;
  for (int i = 0; i < CI_REGISTER_ARGS; i++) passing.args[i] = frame->args[i];
  __u64 at = (__u64)frame, saved_bp = at + FRAME;
  cpu_entry_sp = passing.return_wanted ? at - HANDED_ON - 8 : saved_bp + 8;
  cpu_entry_bp = passing.return_wanted ? saved_bp : *(const __u64*)saved_bp;
  spoil();
  return passing.return_wanted;
}

void ci_leave(struct ci_frame* frame) {
  passing.left++;
  passing.result = frame->result;
  spoil();
}

void patch_code(void* code, size_t size, const void* sites, unsigned count,
                unsigned char* outcomes) {
  struct ci_library library = {.path = "code", .segments = {{0, size, (__u64)code}}, .count = 1};
  ci_patch(&library, sites, count, outcomes);
}
