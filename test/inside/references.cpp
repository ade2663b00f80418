#include "references.hpp"

#include <Zydis/Zydis.h>

#include <stdexcept>

namespace {

// The place of a first operand in memory; nothing: it is none, or does not lie with the code.
std::optional<std::int64_t> place_of(const ZydisDecodedInstruction& one,
                                     const ZydisDecodedOperand& operand, std::int64_t end) {
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.base != ZYDIS_REGISTER_RIP)
    return std::nullopt;
  return end + one.raw.disp.value;
}

std::optional<Compared> compared_by(const ZydisDecodedInstruction& one,
                                    std::span<const ZydisDecodedOperand> operands,
                                    std::int64_t end) {
  bool tests = one.mnemonic == ZYDIS_MNEMONIC_TEST;
  if ((one.mnemonic != ZYDIS_MNEMONIC_CMP && !tests) ||
      operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
    return std::nullopt;
  auto at = place_of(one, operands[0], end);
  if (!at) return std::nullopt;
  std::uint64_t constant = operands[1].imm.value.u;
  return Compared{*at, operands[0].size / 8u, tests ? 0 : constant, tests ? constant : ~constant};
}

}  // namespace

References references_of(std::span<const std::byte> code) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  References found;
  for (std::size_t at = 0; at < code.size();) {
    ZydisDecodedInstruction one;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, code.data() + at, code.size() - at, &one, operands)))
      throw std::runtime_error("a beginning that cannot be decoded");
    at += one.length;
    auto end = static_cast<std::int64_t>(at);
    if (one.raw.imm[0].is_relative) found.targets.push_back(end + one.raw.imm[0].value.s);
    if (one.mnemonic == ZYDIS_MNEMONIC_JMP) found.slot = place_of(one, operands[0], end);
    if (auto compared = compared_by(one, operands, end)) found.compared = compared;
  }
  return found;
}
