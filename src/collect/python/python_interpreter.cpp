#include "collect/python/python_interpreter.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collect/python/loaded_symbols.hpp"

namespace cudabpf {

namespace {

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "3.10" of "/usr/bin/python3.10" and of "libpython3.10.so.1.0"
std::string version_in(std::string_view path) {
  constexpr std::string_view PYTHON = "python";
  std::string_view name = name_of(path);
  std::size_t at = name.find(PYTHON);
  if (at == name.npos) return {};
  name.remove_prefix(at + PYTHON.size());
  std::size_t end = std::min(name.find_first_not_of("0123456789."), name.size());
  while (end && name[end - 1] == '.') end--;
  return std::string(name.substr(0, std::min<std::size_t>(end, 15)));
}

bool may_be_python(const Mapping& mapping, std::string_view program) {
  return mapping.offset == 0 &&
         (mapping.path == program || name_of(mapping.path).starts_with("libpython3"));
}

// Why the frames of a version that is known cannot be found; empty: they can.
std::string find_rest(PythonInterpreter& python, const ProgramMemory& memory,
                      const LoadedSymbols& symbols, std::uint64_t version) {
  for (auto [name, address] :
       {std::pair{"PyCode_Type", &python.code_type}, std::pair{"PyUnicode_Type", &python.text_type},
        std::pair{"PyBytes_Type", &python.bytes_type}}) {
    auto found = symbols.address_of(name);
    if (!found) return CB_PYTHON_EXPORTS_NOTHING;
    *address = *found;
  }
  auto deallocates = memory.value<std::uint64_t>(python.code_type + CB_TYPE_DEALLOCATES);
  if (!deallocates) return CB_PYTHON_EXPORTS_NOTHING;
  python.deallocates = *deallocates;
  std::array<std::uint64_t, CB_PYTHON_PUBLISHED> published{};
  if (abi::cb_python_has_offsets(version) &&
      !memory.read(python.runtime, std::as_writable_bytes(std::span(published))))
    return CB_PYTHON_EXPORTS_NOTHING;
  std::array<__u64, CB_PYTHON_PUBLISHED> words{};
  std::copy(published.begin(), published.end(), words.begin());
  if (const char* why = abi::cb_python_layout_of(&python.at, version, words.data())) return why;
  // The kernel's side reads as much of a frame as every version has.
  for (unsigned at : python.at.in_frame)
    if (at + sizeof(std::uint64_t) > CB_PYTHON_FRAME &&
        (at >= CB_PYTHON_FRAME || at != python.at.in_frame[abi::CB_FRAME_OWNER]))
      return CB_PYTHON_OFFSETS_WRONG;
  return {};
}

}  // namespace

std::optional<PythonInterpreter> find_python(const ProgramMemory& memory,
                                             const std::vector<Mapping>& maps,
                                             std::string_view program) {
  constexpr std::size_t MAX_FILES = 16;
  std::size_t files = 0;
  for (const Mapping& mapping : maps) {
    if (!may_be_python(mapping, program)) continue;
    if (++files > MAX_FILES) break;
    auto symbols = LoadedSymbols::at(memory, mapping.start);
    auto runtime = symbols ? symbols->address_of("_PyRuntime") : std::nullopt;
    if (!runtime) continue;
    PythonInterpreter python;
    python.runtime = *runtime;
    auto says = symbols->address_of("Py_Version");
    auto version = says ? memory.value<std::uint64_t>(*says) : std::nullopt;
    if (!version) {
      python.version = version_in(mapping.path);
      python.why_not = CB_PYTHON_TOO_OLD;
      return python;
    }
    std::array<char, 16> text{};
    abi::cb_put_python_version(text.data(), *version);
    python.version = text.data();
    const char* unknown = abi::cb_python_unknown(*version);
    python.why_not = unknown ? unknown : find_rest(python, memory, *symbols, *version);
    return python;
  }
  return std::nullopt;
}

}  // namespace cudabpf
