#include "util/detour/detour.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <optional>

namespace cudabpf::detour {

namespace {

struct Instruction {
  ZydisDecodedInstruction decoded;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  std::span<const ZydisDecodedOperand> all_operands() const {
    return {operands, decoded.operand_count};
  }
  std::size_t length() const { return decoded.length; }
};

std::optional<Instruction> decode(std::span<const std::byte> code) {
  ZydisDecoder decoder;
  Instruction one;
  if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
      !ZYAN_SUCCESS(
          ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &one.decoded, one.operands)))
    return std::nullopt;
  return one;
}

ZydisRegister whole(ZydisRegister part) {
  return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);
}

// Registers that hold no argument and that nobody expects to find unchanged.
bool is_scratch(ZydisRegister part) {
  ZydisRegister full = whole(part);
  return full == ZYDIS_REGISTER_RAX || full == ZYDIS_REGISTER_R10 || full == ZYDIS_REGISTER_R11;
}

bool is_flags(ZydisRegister part) {
  return part == ZYDIS_REGISTER_RFLAGS || part == ZYDIS_REGISTER_EFLAGS ||
         part == ZYDIS_REGISTER_FLAGS;
}

bool is_register(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER;
}

// `xor eax, eax` reads nothing.
bool clears(const Instruction& one) {
  return (one.decoded.mnemonic == ZYDIS_MNEMONIC_XOR ||
          one.decoded.mnemonic == ZYDIS_MNEMONIC_SUB) &&
         is_register(one.operands[0]) && is_register(one.operands[1]) &&
         one.operands[0].reg.value == one.operands[1].reg.value;
}

// It only computes something for a scratch register, from what is the same when it runs again.
bool computes_scratch(const Instruction& one) {
  switch (one.decoded.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
      break;
    default:
      return false;
  }
  bool cleared = clears(one);
  for (const ZydisDecodedOperand& operand : one.all_operands()) {
    bool read = operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    bool written = operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      if (operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN) return false;
      if (is_scratch(operand.mem.base) || is_scratch(operand.mem.index)) return false;
    }
    if (!is_register(operand)) continue;
    ZydisRegister value = operand.reg.value;
    if (written && !is_scratch(value) && !is_flags(value)) return false;
    if (read && !cleared && (is_scratch(value) || is_flags(value))) return false;
  }
  return true;
}

constexpr std::int64_t MOST_PUSHED = 1 << 20;

// By how much a first instruction lowers the stack pointer; nothing if it cannot run twice.
std::optional<std::int32_t> pushed_by(const Instruction& one) {
  const ZydisDecodedOperand& first = one.operands[0];
  switch (one.decoded.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
      if (is_register(first) && first.size == 64 && whole(first.reg.value) == first.reg.value &&
          ZydisRegisterGetClass(first.reg.value) == ZYDIS_REGCLASS_GPR64)
        return 8;
      return std::nullopt;
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_NOP:
      return 0;
    case ZYDIS_MNEMONIC_SUB:
      if (is_register(first) && first.reg.value == ZYDIS_REGISTER_RSP &&
          one.operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        std::int64_t size = one.operands[1].imm.value.s;
        if (size <= 0 || size > MOST_PUSHED) return std::nullopt;
        return static_cast<std::int32_t>(size);
      }
      break;
    default:
      break;
  }
  return computes_scratch(one) ? std::optional(0) : std::nullopt;
}

// How far a branch goes from its end; nothing if it is none, or where it goes is not in it.
std::optional<std::int64_t> branches_by(const Instruction& one) {
  for (const auto& immediate : one.decoded.raw.imm)
    if (immediate.is_relative) return immediate.value.s;
  return std::nullopt;
}

// Why it cannot be copied elsewhere.
Refusal refusal_of(const Instruction& one) {
  switch (one.decoded.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_RET:
      return Refusal::branch;
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
      return Refusal::trap;
    default:
      break;
  }
  if (branches_by(one)) return Refusal::branch;
  switch (one.decoded.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_XBEGIN:
      return Refusal::trap;
    default:
      return Refusal::none;
  }
}

bool is_relative_to_rip(const Instruction& one) {
  return std::any_of(
      one.all_operands().begin(), one.all_operands().end(), [](const ZydisDecodedOperand& operand) {
        return operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
               (operand.mem.base == ZYDIS_REGISTER_RIP || operand.mem.base == ZYDIS_REGISTER_EIP);
      });
}

// Notes where the displacement of an instruction that begins at `at` is.
Refusal note_displacement(const Instruction& one, std::size_t at, Place& place) {
  if (!is_relative_to_rip(one)) return Refusal::none;
  if (place.fix_at || one.decoded.raw.disp.size != 32) return Refusal::two_displacements;
  place.fix_at = static_cast<std::uint8_t>(at + one.decoded.raw.disp.offset);
  return Refusal::none;
}

// Does any instruction behind the moved ones, as far as can be seen, jump to where the jump is?
bool jumps_back(std::span<const std::byte> code, const Place& place) {
  for (std::size_t at = place.moved; at < code.size();) {
    auto one = decode(code.subspan(at));
    if (!one) return false;
    at += one->length();
    auto by = branches_by(*one);
    if (!by) continue;
    std::int64_t target = static_cast<std::int64_t>(at) + *by;
    if (target >= place.kept && target < place.moved) return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::none:
      return "";
    case Refusal::not_decodable:
      return "its first instructions are not known";
    case Refusal::first_not_repeatable:
      return "its first instruction cannot be run twice";
    case Refusal::branch:
      return "its first instructions jump, call or return";
    case Refusal::trap:
      return "its first instructions trap, or enter the kernel";
    case Refusal::two_displacements:
      return "its first instructions refer to several places by their own";
    case Refusal::jumps_back:
      return "it jumps back to its first instructions";
    case Refusal::too_long:
      return "its first instructions are too long";
    case Refusal::crosses_line:
      return "it begins where a jump cannot be written at once";
  }
  return "";
}

Answer find_place(std::span<const std::byte> code, std::uint64_t address) {
  code = code.first(std::min(code.size(), CODE));
  Place place;
  std::size_t at = 0;
  while (!place.kept || at < place.kept + JUMP) {
    auto one = decode(code.subspan(at));
    if (!one) return {{}, Refusal::not_decodable};
    if (Refusal refusal = refusal_of(*one); refusal != Refusal::none) return {{}, refusal};
    if (Refusal refusal = note_displacement(*one, at, place); refusal != Refusal::none)
      return {{}, refusal};
    if (at == 0) {
      auto pushed = pushed_by(*one);
      if (!pushed) return {{}, Refusal::first_not_repeatable};
      place.pushed = *pushed;
      place.kept = static_cast<std::uint8_t>(one->length());
    }
    at += one->length();
  }
  place.moved = static_cast<std::uint8_t>(at);
  constexpr std::size_t MOST = CODE - 3 * JUMP;  // a jump back follows in the copy's block
  if (place.moved > MOST) return {{}, Refusal::too_long};
  if (address % LINE + place.kept + STORE > LINE) return {{}, Refusal::crosses_line};
  if (jumps_back(code, place)) return {{}, Refusal::jumps_back};
  return {place, Refusal::none};
}

}  // namespace cudabpf::detour
