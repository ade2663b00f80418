#include "util/detour/detour.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

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

// Registers that hold no argument and that no caller expects to find unchanged.
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

// It only computes something for a scratch register, from values that are the same on a second run.
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

bool is_relative_to_rip(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
         (operand.mem.base == ZYDIS_REGISTER_RIP || operand.mem.base == ZYDIS_REGISTER_EIP);
}

// It only sets flags, which the copy sets again. The only memory that it reads lies with the code,
// which is always there.
bool only_compares(const Instruction& one) {
  if (one.decoded.mnemonic != ZYDIS_MNEMONIC_CMP && one.decoded.mnemonic != ZYDIS_MNEMONIC_TEST)
    return false;
  return std::all_of(
      one.all_operands().begin(), one.all_operands().end(), [](const ZydisDecodedOperand& operand) {
        return operand.type != ZYDIS_OPERAND_TYPE_MEMORY ||
               (operand.mem.base == ZYDIS_REGISTER_RIP && operand.mem.segment == ZYDIS_REGISTER_DS);
      });
}

constexpr std::int64_t MAX_PUSHED = 1 << 20;

// How much a first instruction lowers the stack pointer; nothing if it cannot run twice.
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
        if (size <= 0 || size > MAX_PUSHED) return std::nullopt;
        return static_cast<std::int32_t>(size);
      }
      break;
    default:
      break;
  }
  return computes_scratch(one) || only_compares(one) ? std::optional(0) : std::nullopt;
}

// How far a branch goes from its end; nothing if it is none, or if its target is not encoded in it.
std::optional<std::int64_t> branches_by(const Instruction& one) {
  for (const auto& immediate : one.decoded.raw.imm)
    if (immediate.is_relative) return immediate.value.s;
  return std::nullopt;
}

// The opcode of a branch's 32-bit form; none for branches without one (jrcxz, loop), for calls,
// whose return address would be the copy's, and for branches with prefixes, which processors treat
// differently.
std::span<const std::byte> far_opcode(const Instruction& one) {
  static constexpr auto JUMPS = std::byte{0xe9}, ESCAPE = std::byte{0x0f};
  static constexpr auto CONDITIONAL = [] {
    std::array<std::array<std::byte, 2>, 16> opcodes{};
    for (unsigned condition = 0; condition < opcodes.size(); condition++)
      opcodes[condition] = {ESCAPE, static_cast<std::byte>(0x80 + condition)};
    return opcodes;
  }();
  bool is_plain = one.decoded.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  if (!is_plain || one.decoded.raw.prefix_count != 0) return {};
  ZyanU8 opcode = one.decoded.opcode, kind = opcode & 0xf0;
  bool is_short = one.decoded.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
  if (is_short && (opcode == 0xe9 || opcode == 0xeb)) return {&JUMPS, 1};
  bool is_long = one.decoded.opcode_map == ZYDIS_OPCODE_MAP_0F && kind == 0x80;
  if (is_long || (is_short && kind == 0x70)) return CONDITIONAL[opcode & 0x0f];
  return {};
}

// Nothing behind it is run: it is a jump, or the function's end.
bool is_last(const Instruction& one) {
  return one.decoded.mnemonic == ZYDIS_MNEMONIC_JMP || one.decoded.mnemonic == ZYDIS_MNEMONIC_RET;
}

bool is_movable_branch(const Instruction& one) {
  if (branches_by(one)) return !far_opcode(one).empty();
  return is_last(one) && one.decoded.meta.branch_type != ZYDIS_BRANCH_TYPE_FAR &&
         !(one.decoded.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE);
}

// Why the instruction cannot be copied elsewhere.
Refusal refusal_of(const Instruction& one) {
  switch (one.decoded.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_RET:
      return is_movable_branch(one) ? Refusal::none : Refusal::branch;
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
      return Refusal::trap;
    default:
      break;
  }
  switch (one.decoded.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_XBEGIN:
      return Refusal::trap;
    default:
      return branches_by(one) ? Refusal::branch : Refusal::none;
  }
}

// Scratch registers that the instructions so far have completely written.
class Scratch {
 public:
  // False: the instruction reads a register that no earlier one has written. What a caller left
  // there (the count of a variadic call's vector registers, say) is gone when the copy is run.
  bool allows(const Instruction& one) {
    // Neither a nop nor a push uses what the register holds: it is pushed for the stack's
    // alignment.
    if (one.decoded.mnemonic == ZYDIS_MNEMONIC_NOP) return true;
    bool takes = one.decoded.mnemonic != ZYDIS_MNEMONIC_PUSH && !clears(one);
    for (const ZydisDecodedOperand& operand : one.all_operands()) {
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
          !(is_known(operand.mem.base) && is_known(operand.mem.index)))
        return false;
      if (takes && is_register(operand) && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
          !is_known(operand.reg.value))
        return false;
    }
    for (const ZydisDecodedOperand& operand : one.all_operands())
      if (is_register(operand) && (operand.actions & ZYDIS_OPERAND_ACTION_WRITE) &&
          operand.size >= 32 && is_scratch(operand.reg.value))
        written_.insert(whole(operand.reg.value));
    return true;
  }

 private:
  bool is_known(ZydisRegister part) const {
    return !is_scratch(part) || written_.contains(whole(part));
  }

  std::set<ZydisRegister> written_;
};

// A place to which an instruction refers by its distance.
struct Reference {
  std::span<const std::byte> before, after;  // the displacement's 4 bytes
  std::int64_t target = 0;                   // counted from the function's entry
};

// Nothing: the instruction, which begins `at` bytes behind the entry, means the same anywhere.
std::optional<Reference> reference_of(const Instruction& one, std::span<const std::byte> bytes,
                                      std::size_t at) {
  auto end = static_cast<std::int64_t>(at + one.length());
  if (auto by = branches_by(one)) return Reference{far_opcode(one), {}, end + *by};
  if (std::none_of(one.all_operands().begin(), one.all_operands().end(), is_relative_to_rip))
    return std::nullopt;
  const auto& displacement = one.decoded.raw.disp;
  return Reference{bytes.first(displacement.offset), bytes.subspan(displacement.offset + 4u),
                   end + displacement.value};
}

// Copies instruction after instruction.
class Copier {
 public:
  explicit Copier(Place& place) : place_(place) {}

  // The instruction `at` bytes behind the entry, which is movable.
  Refusal add(const Instruction& one, std::span<const std::byte> bytes, std::size_t at) {
    auto reference = reference_of(one, bytes, at);
    if (!reference) return put(bytes) ? Refusal::none : Refusal::too_long;
    if (fixed_ == FIXED) return Refusal::many_displacements;
    if (!put(reference->before)) return Refusal::too_long;
    place_.fix_at[fixed_++] = place_.copied;
    std::int64_t end = place_.copied + 4 + static_cast<std::int64_t>(reference->after.size());
    auto displacement = static_cast<std::int32_t>(reference->target - end);
    if (displacement != reference->target - end) return Refusal::too_far;
    if (!put(std::as_bytes(std::span(&displacement, 1))) || !put(reference->after))
      return Refusal::too_long;
    return Refusal::none;
  }

 private:
  bool put(std::span<const std::byte> bytes) {
    if (bytes.size() > COPIED - place_.copied) return false;
    std::copy(bytes.begin(), bytes.end(), place_.copy.begin() + place_.copied);
    place_.copied = static_cast<std::uint8_t>(place_.copied + bytes.size());
    return true;
  }

  Place& place_;
  std::size_t fixed_ = 0;
};

// Does any known instruction jump to where the jump is? Those that are moved must not jump to any
// of them either, since they would leave the copy.
bool jumps_into(std::span<const std::byte> code, const Place& place) {
  for (std::size_t at = 0; at < code.size();) {
    auto one = decode(code.subspan(at));
    if (!one) return false;
    std::int64_t from = at < place.moved ? 0 : place.kept;
    at += one->length();
    auto by = branches_by(*one);
    if (!by) continue;
    std::int64_t target = static_cast<std::int64_t>(at) + *by;
    if (target >= from && target < place.moved) return true;
  }
  return false;
}

// Where a store that writes all of the jump can begin; nothing if it would cross a line, or write
// the function's first byte, which is a uprobe's.
std::optional<std::uint8_t> store_at(std::uint64_t address, std::size_t kept) {
  for (std::size_t at = kept; at >= 1 && at + STORE >= kept + JUMP; at--)
    if ((address + at) % LINE + STORE <= LINE) return static_cast<std::uint8_t>(at);
  return std::nullopt;
}

// Goes through the instructions to move, and fills in all but where the store begins.
Refusal move(std::span<const std::byte> code, Place& place) {
  Scratch scratch;
  Copier copier(place);
  std::size_t at = 0;
  while (!place.kept || at < place.kept + JUMP) {
    auto one = decode(code.subspan(at));
    if (!one) return Refusal::not_decodable;
    if (Refusal refusal = refusal_of(*one); refusal != Refusal::none) return refusal;
    if (at == 0) {
      if (is_last(*one) || branches_by(*one)) return Refusal::branch;
      auto pushed = pushed_by(*one);
      if (!pushed) return Refusal::first_not_repeatable;
      place.pushed = *pushed;
      place.kept = static_cast<std::uint8_t>(one->length());
    }
    if (!scratch.allows(*one)) return Refusal::reads_scratch;
    if (Refusal refusal = copier.add(*one, code.subspan(at, one->length()), at);
        refusal != Refusal::none)
      return refusal;
    at += one->length();
    // The jump would reach beyond this function.
    if (is_last(*one) && at < place.kept + JUMP) return Refusal::branch;
  }
  place.moved = static_cast<std::uint8_t>(at);
  return Refusal::none;
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
    case Refusal::reads_scratch:
      return "its first instructions take something from a register that is no argument's";
    case Refusal::many_displacements:
      return "its first instructions refer to too many places by their own";
    case Refusal::too_far:
      return "its first instructions refer to a place too far away";
    case Refusal::jumps_into:
      return "it jumps to its first instructions";
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
  if (Refusal refusal = move(code, place); refusal != Refusal::none) return {{}, refusal};
  auto stored = store_at(address, place.kept);
  if (!stored) return {{}, Refusal::crosses_line};
  place.stored = *stored;
  if (jumps_into(code, place)) return {{}, Refusal::jumps_into};
  return {place, Refusal::none};
}

}  // namespace cudabpf::detour
