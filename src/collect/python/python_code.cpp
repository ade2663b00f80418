#include "collect/python/python_code.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cudabpf/python_text.h"
#include "cudabpf/stacks.h"

namespace cudabpf {

namespace {

constexpr std::uint64_t MAX_LINES = 256 << 10;  // bytes of a table of lines

class CodeReader {
 public:
  CodeReader(const ProgramMemory& memory, const PythonInterpreter& python, std::uint64_t code)
      : memory_(memory), python_(python), code_(code) {}

  bool is_code() const { return is_of_type(code_, python_.code_type); }
  std::optional<std::string> text(abi::cb_in_code which, std::uint32_t most, bool& cut) const;
  std::optional<std::uint32_t> line_of(std::uint32_t instruction) const;

 private:
  std::uint64_t place_of(abi::cb_in_code which) const { return code_ + python_.at.in_code[which]; }
  std::optional<std::uint64_t> object(abi::cb_in_code which, std::uint64_t type) const;
  bool is_of_type(std::uint64_t object, std::uint64_t type) const {
    return memory_.value<std::uint64_t>(object + CB_OBJECT_TYPE) == type;
  }

  const ProgramMemory& memory_;
  const PythonInterpreter& python_;
  std::uint64_t code_;
};

std::optional<std::uint64_t> CodeReader::object(abi::cb_in_code which, std::uint64_t type) const {
  auto object = memory_.value<std::uint64_t>(place_of(which));
  return object && is_of_type(*object, type) ? object : std::nullopt;
}

std::optional<std::string> CodeReader::text(abi::cb_in_code which, std::uint32_t most,
                                            bool& cut) const {
  auto object = this->object(which, python_.text_type);
  auto state = object ? memory_.value<std::uint32_t>(*object + CB_TEXT_STATE) : std::nullopt;
  auto length = object ? memory_.value<std::uint64_t>(*object + CB_OBJECT_SIZE) : std::nullopt;
  if (!state || !length) return std::nullopt;
  abi::cb_python_text said{};
  said.width = abi::cb_text_width(*state);
  if (!said.width) return std::nullopt;
  said.length = std::min<std::uint64_t>(*length, most + 1ULL);  // each has a byte at least
  std::vector<std::uint32_t> characters(said.length);           // as wide as they may be
  auto bytes = std::as_writable_bytes(std::span(characters)).first(said.length * said.width);
  if (!memory_.read(*object + abi::cb_text_begins(&python_.at, *state), bytes)) return std::nullopt;
  said.characters = characters.data();
  std::string text(most, '\0');
  text.resize(abi::cb_put_python_text(text.data(), said, most, &cut));
  return text;
}

std::optional<std::uint32_t> CodeReader::line_of(std::uint32_t instruction) const {
  auto table = object(abi::CB_CODE_LINES, python_.bytes_type);
  if (!table) return std::nullopt;
  auto size = memory_.value<std::uint64_t>(*table + CB_OBJECT_SIZE).value_or(MAX_LINES + 1);
  auto first = memory_.value<std::uint32_t>(place_of(abi::CB_CODE_FIRST_LINE));
  auto instructions = memory_.value<std::uint64_t>(code_ + CB_OBJECT_SIZE);
  if (size > MAX_LINES || !first || !instructions || *instructions >> 32) return std::nullopt;
  std::int64_t at = std::int64_t{instruction} - python_.at.in_code[abi::CB_CODE_INSTRUCTIONS];
  auto all = static_cast<std::int64_t>(*instructions * CB_INSTRUCTION);
  if (at < -CB_INSTRUCTION || at >= all) return std::nullopt;
  std::vector<std::uint8_t> bytes(size);
  if (!memory_.read(*table + CB_BYTES_CONTENT, std::as_writable_bytes(std::span(bytes))))
    return std::nullopt;
  return abi::cb_python_line(bytes.data(), bytes.size(), *first, at);
}

}  // namespace

std::optional<PythonFrameText> read_frame_text(const ProgramMemory& memory,
                                               const PythonInterpreter& python, std::uint64_t code,
                                               std::uint32_t instruction) {
  CodeReader reader(memory, python, code);
  if (!reader.is_code()) return std::nullopt;
  PythonFrameText frame;
  auto function = reader.text(abi::CB_CODE_FUNCTION, CB_FUNCTION_TEXT, frame.cut);
  auto file = reader.text(abi::CB_CODE_FILE, CB_FILE_TEXT, frame.cut);
  auto line = reader.line_of(instruction);
  if (!function || !file || !line) return std::nullopt;
  frame.function = std::move(*function);
  frame.file = std::move(*file);
  frame.line = *line;
  return frame;
}

}  // namespace cudabpf
