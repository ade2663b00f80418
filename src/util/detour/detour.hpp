// Where a jump can be written into a function of x86-64, so that each call of it passes by somebody
// else first. The first instruction stays where it is, for a uprobe that is put on it later runs
// the instruction that the file has there; the jump comes behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cudabpf::detour {

inline constexpr std::size_t CODE = 32;  // bytes of a function that are looked at
inline constexpr std::size_t JUMP = 5;   // what is written
// It is written by one store of 8 bytes, which other threads see as one only within such a line.
inline constexpr std::size_t STORE = 8, LINE = 16;

struct Place {
  std::uint8_t kept = 0;    // length of the first instruction
  std::uint8_t moved = 0;   // of the whole instructions up to where the jump ends: to be copied
  std::uint8_t fix_at = 0;  // of a displacement from RIP, 4 bytes to be corrected in the copy; 0:
                            // there is none
  std::int32_t pushed = 0;  // by how much the first instruction lowers the stack pointer
};

// Why a function is left alone.
enum class Refusal : std::uint8_t {
  none,
  not_decodable,
  first_not_repeatable,  // the copy begins with the first instruction, which has run by then
  branch,
  trap,               // a breakpoint, or an instruction that enters the kernel
  two_displacements,  // only one can be corrected
  jumps_back,         // some instruction further on jumps to where the jump is
  too_long,
  crosses_line,
};
std::string_view to_string(Refusal refusal);

struct Answer {
  Place place;
  Refusal refusal = Refusal::none;
};

// `code`: the function's first bytes, as many as there are, CODE at most. `address`: of the first,
// of which only the place within a line counts.
Answer find_place(std::span<const std::byte> code, std::uint64_t address);

}  // namespace cudabpf::detour
