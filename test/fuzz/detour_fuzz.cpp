// A library's code comes from the traced process: none may make the decoder read beyond it, and no
// place may be given where a jump, or the copy of what it covers, would change what the code does.
// The first byte of an input is the function's address, of which the place in a line counts.
#include <Zydis/Zydis.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
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
      require((!reads && !writes) || (is_pushed && !reads));
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

// An instruction `at` bytes behind the entry means the same as its copy, as far behind COPY_AT.
void check_same(const Decoded& original, const Decoded& copy, std::size_t at) {
  require(copy.all.length == original.all.length && copy.all.mnemonic == original.all.mnemonic);
  for (std::size_t i = 0; i < original.all.operand_count; i++) {
    const ZydisDecodedOperand& operand = original.operands[i];
    bool is_relative = operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative;
    require(!is_relative);
    if (!is_relative_to_rip(operand)) continue;
    ZyanU64 meant = 0, means = 0;
    require(ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&original.all, &operand, AT + at, &meant)));
    require(
        ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&copy.all, &copy.operands[i], COPY_AT + at, &means)));
    // What is out of the copy's reach wraps here; the library in the process then makes no copy.
    require(static_cast<uint32_t>(meant) == static_cast<uint32_t>(means));
  }
}

bool goes_elsewhere(const Decoded& one) {
  switch (one.all.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
      return true;
    default:
      return one.all.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE;
  }
}

void check_moved(std::span<const std::byte> code, const detour::Place& place) {
  std::vector<std::byte> copy(code.begin(), code.begin() + place.moved);
  if (place.fix_at) {
    uint32_t displacement = 0;
    for (unsigned i = 4; i-- > 0;)
      displacement = displacement << 8 | std::to_integer<uint32_t>(copy[place.fix_at + i]);
    displacement += static_cast<uint32_t>(AT - COPY_AT);
    for (unsigned i = 0; i < 4; i++)
      copy[place.fix_at + i] = static_cast<std::byte>(displacement >> 8 * i);
  }
  std::size_t at = 0, last = 0;
  while (at < place.moved) {
    Decoded original = decode(code.subspan(at));
    require(!goes_elsewhere(original));
    check_same(original, decode(std::span(copy).subspan(at)), at);
    if (at == 0) {
      require(original.all.length == place.kept);
      check_first(original, place);
    }
    last = at;
    at += original.all.length;
  }
  require(at == place.moved && last < place.kept + detour::JUMP);
}

bool same(const detour::Answer& one, const detour::Answer& other) {
  return one.refusal == other.refusal && one.place.kept == other.place.kept &&
         one.place.moved == other.place.moved && one.place.fix_at == other.place.fix_at &&
         one.place.pushed == other.place.pushed;
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
  require(place.moved <= code.size() && place.moved <= detour::CODE - 15);
  require(address % detour::LINE + place.kept + detour::STORE <= detour::LINE);
  require(place.pushed >= 0 && place.pushed <= 1 << 20);
  require(!place.fix_at || place.fix_at + 4 <= place.moved);
  check_moved(code, place);
  // What is moved decides, whatever follows; and no part of it would do.
  require(same(answer, detour::find_place(code.first(place.moved), address)));
  require(detour::find_place(code.first(place.moved - 1u), address).refusal ==
          detour::Refusal::not_decodable);
  return 0;
}
