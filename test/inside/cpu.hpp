// Calls a function of which only the beginning is there, which then jumps to cpu_behind(): what it
// has done to registers by then is written down (cpu.S).
#pragma once

#include <cstdint>

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, GENERAL };

struct cpu_state {
  std::uint64_t general[GENERAL];
  std::uint64_t vectors[16][2];
  std::uint64_t flags;
};

extern "C" {
// Calls cpu_function with the registers cpu_before. cpu_behind() writes cpu_reached, calls
// cpu_look(), and returns from the function with the registers cpu_spoilt where a function may.
void cpu_call();
void cpu_behind();
void cpu_look();  // the caller's own

extern void* cpu_function;
extern cpu_state cpu_before, cpu_reached, cpu_spoilt, cpu_after;
// As they were when the function was entered, below its caller's.
extern std::uint64_t cpu_entry_sp, cpu_entry_bp;
}
