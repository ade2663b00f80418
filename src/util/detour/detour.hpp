// Where a jump can be written into a function of x86-64, so that each call of it passes through
// other code first. The first instruction stays where it is, since a uprobe that is put on it later
// runs the instruction that the file has there; the jump comes behind it. The instructions under
// the jump run from a copy elsewhere, which begins with the first instruction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cudabpf::detour {

inline constexpr std::size_t CODE = 32;    // bytes of a function that are looked at
inline constexpr std::size_t JUMP = 5;     // what is written
inline constexpr std::size_t COPIED = 32;  // bytes of a copy, at most
inline constexpr std::size_t FIXED = 3;    // displacements of a copy that can be corrected
// It is written by one store of 8 bytes, which other threads see as one only within such a line.
inline constexpr std::size_t STORE = 8, LINE = 16;

struct Place {
  std::uint8_t kept = 0;    // length of the first instruction
  std::uint8_t moved = 0;   // of the whole instructions up to where the jump ends
  std::uint8_t copied = 0;  // length of their copy, in which short branches have become long ones
  std::uint8_t stored = 0;  // where the store begins: behind the first byte
  std::int32_t pushed = 0;  // by how much the first instruction lowers the stack pointer
  // The copy as it would be at the function's own address. The distance by which it lies before
  // that is added to each displacement (4 bytes) that begins where `fix_at` says; 0: no more of
  // them.
  std::array<std::byte, COPIED> copy{};
  std::array<std::uint8_t, FIXED> fix_at{};

  bool operator==(const Place&) const = default;
};

// Why a function is left alone.
enum class Refusal : std::uint8_t {
  none,
  not_decodable,
  first_not_repeatable,  // the copy begins with the first instruction, which has run by then
  branch,
  trap,           // a breakpoint, or an instruction that enters the kernel
  reads_scratch,  // a register that holds no argument, and is not kept for the copy
  many_displacements,
  too_far,     // a displacement has no room for the few bytes by which a copy is longer
  jumps_into,  // some instruction jumps to a moved one, or to where the jump is
  too_long,
  crosses_line,
};
std::string_view to_string(Refusal refusal);

struct Answer {
  Place place;
  Refusal refusal = Refusal::none;
};

// `code`: the function's first bytes, as many as there are, CODE at most. `address`: of the first
// one; only its place within a line counts.
Answer find_place(std::span<const std::byte> code, std::uint64_t address);

}  // namespace cudabpf::detour
