// A library's code comes from the traced process: none may make the decoder read beyond it, and no
// place may be given where a jump, or the copy of what it covers, would change what the code does.
// The first byte of an input is the function's address, of which the place in a line counts.
#include <Zydis/Zydis.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "util/detour/detour.hpp"

using namespace cudabpf;

namespace {

constexpr uint64_t AT = 0x7f1234560000, COPY_AT = AT - 0x12345678;  // what a copy's address may be

struct Decoded {
  ZydisDecodedInstruction all;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

void require(bool kept) {
  if (!kept) abort();
}

Decoded decode(std::span<const std::byte> code) {
  ZydisDecoder decoder;
  Decoded one;
  require(
      ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)));
  require(ZYAN_SUCCESS(
      ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &one.all, one.operands)));
  return one;
}

bool is_of(ZydisRegister part, std::initializer_list<ZydisRegister> wholes) {
  ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);
  for (ZydisRegister whole : wholes)
    if (full == whole) return true;
  return false;
}

bool is_relative_to_rip(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
         ZydisRegisterGetClass(operand.mem.base) == ZYDIS_REGCLASS_IP;
}

bool is_scratch(ZydisRegister part) {
  return is_of(part, {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_R10, ZYDIS_REGISTER_R11});
}

// `xor eax, eax` takes nothing from eax, though it reads it.
bool clears(const Decoded& one) {
  return (one.all.mnemonic == ZYDIS_MNEMONIC_XOR || one.all.mnemonic == ZYDIS_MNEMONIC_SUB) &&
         one.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         one.operands[0].reg.value == one.operands[1].reg.value;
}

bool is_compare(const Decoded& one) {
  return one.all.mnemonic == ZYDIS_MNEMONIC_CMP || one.all.mnemonic == ZYDIS_MNEMONIC_TEST;
}

// The first instruction has run when the copy runs it again, and so has what lies between: the
// stack pointer is put back, but scratch registers and flags are not as they were.
void check_first(const Decoded& first, const detour::Place& place) {
  // It names operands, and touches none.
  if (first.all.mnemonic == ZYDIS_MNEMONIC_NOP) return require(place.pushed == 0);
  bool is_push = first.all.mnemonic == ZYDIS_MNEMONIC_PUSH;
  if (is_push) require(place.pushed == 8 && first.operands[0].size == 64);
  for (std::size_t i = 0; i < first.all.operand_count; i++) {
    const ZydisDecodedOperand& operand = first.operands[i];
    bool reads = operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    bool writes = operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      bool is_pushed = is_push && operand.mem.base == ZYDIS_REGISTER_RSP;
      bool is_compared = is_compare(first) && operand.mem.base == ZYDIS_REGISTER_RIP &&
                         operand.mem.segment != ZYDIS_REGISTER_FS &&
                         operand.mem.segment != ZYDIS_REGISTER_GS;
      require((!reads || is_compared) && (!writes || is_pushed));
      require(!is_scratch(operand.mem.base) && !is_scratch(operand.mem.index));
    }
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    ZydisRegister value = operand.reg.value;
    bool is_flags = ZydisRegisterGetClass(value) == ZYDIS_REGCLASS_FLAGS;
    if (writes)
      require(is_flags || is_scratch(value) || (value == ZYDIS_REGISTER_RSP && place.pushed > 0));
    // What a scratch register holds on entry is pushed for the stack's alignment alone.
    if (reads && (is_flags || is_scratch(value))) require(clears(first) || is_push);
  }
}

// What the instruction refers to by its own address; nothing: nothing.
std::optional<uint64_t> referred_by(const Decoded& one, uint64_t address) {
  for (std::size_t i = 0; i < one.all.operand_count; i++) {
    const ZydisDecodedOperand& operand = one.operands[i];
    bool is_relative = operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative;
    if (!is_relative && !is_relative_to_rip(operand)) continue;
    ZyanU64 meant = 0;
    require(ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&one.all, &operand, address, &meant)));
    return meant;
  }
  return std::nullopt;
}

bool ends(const Decoded& one) {
  return one.all.mnemonic == ZYDIS_MNEMONIC_JMP || one.all.mnemonic == ZYDIS_MNEMONIC_RET;
}

// It is one of those branches that a copy may have.
bool is_allowed(const Decoded& one) {
  switch (one.all.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
      return false;
    case ZYDIS_CATEGORY_COND_BR:
      return one.all.mnemonic != ZYDIS_MNEMONIC_JCXZ && one.all.mnemonic != ZYDIS_MNEMONIC_JECXZ &&
             one.all.mnemonic != ZYDIS_MNEMONIC_JRCXZ && one.all.mnemonic != ZYDIS_MNEMONIC_LOOP &&
             one.all.mnemonic != ZYDIS_MNEMONIC_LOOPE &&
             one.all.mnemonic != ZYDIS_MNEMONIC_LOOPNE && one.all.mnemonic != ZYDIS_MNEMONIC_XBEGIN;
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_RET:
      return ends(one) && one.all.meta.branch_type != ZYDIS_BRANCH_TYPE_FAR;
    default:
      return one.all.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE;
  }
}

// An instruction means the same as its copy.
void check_same(const Decoded& original, uint64_t address, const Decoded& copy,
                uint64_t copy_address) {
  require(copy.all.mnemonic == original.all.mnemonic);
  require(copy.all.operand_count == original.all.operand_count);
  auto meant = referred_by(original, address), means = referred_by(copy, copy_address);
  require(meant.has_value() == means.has_value());
  // What is out of the copy's reach wraps here; the library in the process then makes no copy.
  if (meant) require(static_cast<uint32_t>(*meant) == static_cast<uint32_t>(*means));
  for (std::size_t i = 0; i < original.all.operand_count; i++) {
    const ZydisDecodedOperand &one = original.operands[i], &other = copy.operands[i];
    require(one.type == other.type);
    if (one.type == ZYDIS_OPERAND_TYPE_REGISTER) require(one.reg.value == other.reg.value);
    if (one.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      require(one.mem.base == other.mem.base && one.mem.index == other.mem.index);
      require(one.mem.segment == other.mem.segment && one.mem.scale == other.mem.scale);
      if (!is_relative_to_rip(one)) require(one.mem.disp.value == other.mem.disp.value);
    }
    if (one.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !one.imm.is_relative)
      require(one.imm.value.u == other.imm.value.u && one.size == other.size);
  }
}

// What a caller left in a scratch register is not there when the copy is run. `known`: those that
// have been written since the entry.
void check_scratch(const Decoded& one, std::set<ZydisRegister>& known) {
  if (one.all.mnemonic == ZYDIS_MNEMONIC_NOP) return;
  auto is_known = [&](ZydisRegister part) {
    return !is_scratch(part) ||
           known.contains(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part));
  };
  std::set<ZydisRegister> written;
  for (std::size_t i = 0; i < one.all.operand_count; i++) {
    const ZydisDecodedOperand& operand = one.operands[i];
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY)
      require(is_known(operand.mem.base) && is_known(operand.mem.index));
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    ZydisRegister value = operand.reg.value;
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ)
      require(is_known(value) || clears(one) || one.all.mnemonic == ZYDIS_MNEMONIC_PUSH);
    if ((operand.actions & ZYDIS_OPERAND_ACTION_WRITE) && operand.size >= 32)
      written.insert(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, value));
  }
  known.merge(written);
}

// As the library in the process finishes it. Each displacement is one of its own.
std::vector<std::byte> finished_copy(const detour::Place& place) {
  std::vector<std::byte> copy(place.copy.begin(), place.copy.begin() + place.copied);
  std::size_t from = 1;
  for (std::size_t fix_at : place.fix_at) {
    if (fix_at == 0) from = copy.size();
    if (fix_at == 0) continue;
    require(fix_at >= from && fix_at + 4 <= copy.size());
    from = fix_at + 4;
    uint32_t displacement = 0;
    for (unsigned i = 4; i-- > 0;)
      displacement = displacement << 8 | std::to_integer<uint32_t>(copy[fix_at + i]);
    displacement += static_cast<uint32_t>(AT - COPY_AT);
    for (unsigned i = 0; i < 4; i++)
      copy[fix_at + i] = static_cast<std::byte>(displacement >> 8 * i);
  }
  return copy;
}

void check_moved(std::span<const std::byte> code, const detour::Place& place) {
  std::vector<std::byte> finished = finished_copy(place);
  std::span<const std::byte> copy = finished;
  std::set<ZydisRegister> known;
  std::size_t at = 0, copy_at = 0, last = 0;
  bool over = false;
  while (at < place.moved) {
    Decoded original = decode(code.subspan(at)), copied = decode(copy.subspan(copy_at));
    require(!over && is_allowed(original));
    check_same(original, AT + at, copied, COPY_AT + copy_at);
    check_scratch(original, known);
    if (at == 0) {
      require(original.all.length == place.kept && copied.all.length == place.kept);
      require(original.all.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE);
      check_first(original, place);
    }
    if (original.all.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
      if (auto target = referred_by(original, AT + at);
          target && original.all.raw.imm[0].is_relative)
        require(*target - AT >= place.moved);
    over = ends(original);
    last = at;
    at += original.all.length;
    copy_at += copied.all.length;
  }
  require(at == place.moved && copy_at == place.copied && last < place.kept + detour::JUMP);
}

bool same(const detour::Answer& one, const detour::Answer& other) {
  return one.refusal == other.refusal && one.place == other.place;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto code = std::as_bytes(std::span(data + 1, size - 1));
  uint64_t address = *data;
  detour::Answer answer = detour::find_place(code, address);
  require(same(answer, detour::find_place(code, AT + address)));
  if (answer.refusal != detour::Refusal::none) {
    require(!to_string(answer.refusal).empty() && same(answer, {{}, answer.refusal}));
    return 0;
  }
  const detour::Place& place = answer.place;
  require(place.kept > 0 && place.moved >= place.kept + detour::JUMP);
  require(place.moved <= code.size() && place.moved <= detour::CODE);
  require(place.stored >= 1 && place.stored <= place.kept);
  require(place.stored + detour::STORE >= place.kept + detour::JUMP);
  require((address + place.stored) % detour::LINE <= detour::LINE - detour::STORE);
  require(place.pushed >= 0 && place.pushed <= 1 << 20);
  check_moved(code, place);
  // What is moved decides, whatever follows; and no part of it would do.
  require(same(answer, detour::find_place(code.first(place.moved), address)));
  require(detour::find_place(code.first(place.moved - 1u), address).refusal ==
          detour::Refusal::not_decodable);
  return 0;
}
