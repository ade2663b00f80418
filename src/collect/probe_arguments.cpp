#include "collect/probe_arguments.hpp"

#include <array>
#include <cstdint>
#include <limits>

#include "util/whole_number.hpp"

namespace cudabpf {

namespace {

struct Register {
  std::uint8_t word;                      // of the kernel's pt_regs
  std::array<std::string_view, 4> names;  // of its low 8, 4, 2 bytes and of the lowest
};
constexpr Register REGISTERS[] = {
    {0, {"r15", "r15d", "r15w", "r15b"}}, {1, {"r14", "r14d", "r14w", "r14b"}},
    {2, {"r13", "r13d", "r13w", "r13b"}}, {3, {"r12", "r12d", "r12w", "r12b"}},
    {4, {"rbp", "ebp", "bp", "bpl"}},     {5, {"rbx", "ebx", "bx", "bl"}},
    {6, {"r11", "r11d", "r11w", "r11b"}}, {7, {"r10", "r10d", "r10w", "r10b"}},
    {8, {"r9", "r9d", "r9w", "r9b"}},     {9, {"r8", "r8d", "r8w", "r8b"}},
    {10, {"rax", "eax", "ax", "al"}},     {11, {"rcx", "ecx", "cx", "cl"}},
    {12, {"rdx", "edx", "dx", "dl"}},     {13, {"rsi", "esi", "si", "sil"}},
    {14, {"rdi", "edi", "di", "dil"}},    {19, {"rsp", "esp", "sp", "spl"}},
};

// All of it, within these limits.
std::optional<std::int64_t> number_in(std::string_view text, std::int64_t least,
                                      std::int64_t most) {
  auto value = whole_number<std::int64_t>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}
template <typename Number>
std::optional<std::int64_t> number_of(std::string_view text) {
  return number_in(text, std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max());
}

// `whole`: an address is in all of it.
std::optional<std::uint8_t> register_in(std::string_view text, bool whole) {
  if (!text.starts_with('%')) return std::nullopt;
  for (const Register& one : REGISTERS)
    for (std::size_t i = 0; i < (whole ? 1 : one.names.size()); i++)
      if (one.names[i] == text.substr(1)) return one.word;
  return std::nullopt;
}

// Takes what comes before the character, and it, off the front; all of it if it has none.
std::string_view take_until(std::string_view& text, char end) {
  std::size_t at = text.find(end);
  std::string_view before = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return before;
}

// "-20(%rbp)", "(%rax,%rbx,8)"
bool read_memory(std::string_view text, abi::cb_read& read) {
  if (!text.ends_with(')')) return false;
  text.remove_suffix(1);
  std::string_view before = take_until(text, '(');
  auto offset = before.empty() ? std::optional<std::int64_t>(0) : number_of<std::int16_t>(before);
  auto base = register_in(take_until(text, ','), true);
  if (!offset || !base) return false;
  read.kind = abi::CB_READ_MEMORY;
  read.base = *base;
  read.offset = static_cast<std::uint16_t>(*offset);
  if (text.empty()) return true;
  auto index = register_in(take_until(text, ','), true);
  if (!index) return false;
  for (unsigned shift = 0; shift < 4; shift++)
    if (text == std::string_view("1248").substr(shift, 1)) {
      read.size = static_cast<std::uint16_t>(CB_INDEX(*index, shift));
      return true;
    }
  return false;
}

bool read_operand(std::string_view text, abi::cb_read& read) {
  if (text.starts_with('$')) {
    auto value = number_of<std::int32_t>(text.substr(1));
    if (!value) return false;
    read.kind = abi::CB_READ_CONSTANT;
    read.offset = static_cast<std::uint16_t>(*value);
    read.size = static_cast<std::uint16_t>(*value >> 16);
    return true;
  }
  if (!text.starts_with('%')) return read_memory(text, read);
  auto whose = register_in(text, false);
  read.kind = abi::CB_READ_REGISTER;
  read.base = whose.value_or(0);
  return whose.has_value();
}

bool read_argument(std::string_view text, abi::cb_read& read) {
  auto bytes = number_in(take_until(text, '@'), -8, 8);
  if (!bytes) return false;
  std::int64_t size = *bytes < 0 ? -*bytes : *bytes;
  if (size != 1 && size != 2 && size != 4 && size != 8) return false;
  read.count = static_cast<std::uint8_t>(size | (*bytes < 0 ? CB_SIGNED : 0));
  return read_operand(text, read);
}

}  // namespace

std::optional<std::vector<abi::cb_read>> reads_of_probe(elf::Machine machine,
                                                        std::string_view arguments,
                                                        std::size_t count) {
  if (machine != elf::Machine::x86_64 || count > CB_MAX_READS) return std::nullopt;
  std::vector<abi::cb_read> reads;
  while (!arguments.empty()) {
    std::string_view text = take_until(arguments, ' ');
    if (text.empty()) continue;
    abi::cb_read read{};
    read.to = static_cast<std::uint8_t>(reads.size());
    if (reads.size() == count || !read_argument(text, read)) return std::nullopt;
    reads.push_back(read);
  }
  if (reads.size() != count) return std::nullopt;
  return reads;
}

}  // namespace cudabpf
