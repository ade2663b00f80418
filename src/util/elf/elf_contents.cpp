#include "util/elf/elf_contents.hpp"

#include <algorithm>
#include <cstring>

namespace cudabpf::elf {

namespace {

enum Kind : std::uint64_t { REFUSED, READ };
constexpr std::size_t MAX_MESSAGE = 512;
constexpr std::size_t MAX_SONAME = 255;
constexpr std::size_t MAX_ARGUMENTS = 512;  // of a probe, as text
constexpr std::size_t MAX_CODE = 255;       // what Wanted can ask for

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Made of letters, digits and `others`.
bool is_plain(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_alphanumeric(c) || others.find(c) != others.npos; });
}
bool is_function_name(std::string_view name) {
  return !name.empty() && name.size() <= MAX_NAME && is_plain(name, "_.$");
}
bool is_probe_name(std::string_view name) {
  return name.size() <= MAX_NAME && is_plain(name, "_:") && name.find(':') != name.npos;
}
bool is_probe_arguments(std::string_view text) {
  return text.size() <= MAX_ARGUMENTS && is_plain(text, "@%$-+(),* _.");
}
bool is_soname(std::string_view name) {
  return name.size() <= MAX_SONAME && is_plain(name, "_.+-");
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

void put(std::string& to, std::uint64_t number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void put(std::string& to, std::string_view text) {
  put(to, text.size());
  to += text;
}

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (bytes_.size() < sizeof value) return fail(), 0;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text(std::size_t most) {
    std::uint64_t size = number();
    if (size > most || size > bytes_.size()) return fail(), std::string{};
    std::string value(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return value;
  }
  std::vector<std::byte> bytes(std::size_t most) {
    std::string value = text(most);
    auto* first = reinterpret_cast<const std::byte*>(value.data());
    return {first, first + value.size()};
  }
  void fail() { sound_ = false; }
  bool sound() const { return sound_; }
  bool at_end() const { return sound_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool sound_ = true;
};

}  // namespace

Result<Contents> contents_of(const Image& image, const Wanted& wanted) {
  Contents contents;
  contents.machine = image.machine();
  contents.build_id = image.build_id();
  if (is_soname(image.soname())) contents.soname = image.soname();
  if (wanted.probes) {
    contents.probes = image.static_probes(wanted.prefix, &contents.left_out);
    contents.left_out += std::erase_if(contents.probes, [](const StaticProbe& probe) {
      return !is_probe_name(probe.name) || !is_probe_arguments(probe.arguments);
    });
    return contents;
  }
  contents.functions = image.functions(wanted.prefix, &contents.left_out);
  contents.left_out += std::erase_if(contents.functions, [](const Function& function) {
    return !is_function_name(function.name);
  });
  if (wanted.code)
    for (Function& function : contents.functions) function.code = image.code(function, wanted.code);
  if (!wanted.prologues || image.machine() != Machine::x86_64) return contents;
  constexpr std::byte PUSH_RBP{0x55};
  for (const Function& function : contents.functions) {
    auto code = image.code(function, 1);
    if (!code.empty() && code[0] != PUSH_RBP) contents.other_prologues++;
  }
  return contents;
}

std::string encode(const Result<Contents>& contents) {
  std::string bytes;
  if (!contents) {
    put(bytes, REFUSED);
    put(bytes, contents.error().message);
    put(bytes, contents.error().hint);
    return bytes;
  }
  put(bytes, READ);
  put(bytes, static_cast<std::uint64_t>(contents->machine));
  put(bytes, contents->build_id);
  put(bytes, contents->soname);
  put(bytes, contents->other_prologues);
  put(bytes, contents->left_out);
  put(bytes, contents->functions.size());
  for (const Function& function : contents->functions) {
    put(bytes, function.name);
    put(bytes, function.address);
    put(bytes, function.offset);
    put(bytes, function.size);
    put(bytes, std::string_view(reinterpret_cast<const char*>(function.code.data()),
                                function.code.size()));
  }
  put(bytes, contents->probes.size());
  for (const StaticProbe& probe : contents->probes) {
    put(bytes, probe.name);
    put(bytes, probe.offset);
    put(bytes, probe.semaphore);
    put(bytes, probe.arguments);
  }
  return bytes;
}

Result<Contents> decode(std::string_view answer, std::uint64_t file_size) {
  Error nonsense{"the process that reads it gave an invalid answer"};
  Decoder decoder(answer);
  std::uint64_t kind = decoder.number();
  if (kind == REFUSED) {
    Error error{decoder.text(MAX_MESSAGE), decoder.text(MAX_MESSAGE)};
    bool sound = decoder.at_end() && !error.message.empty() && is_printable(error.message) &&
                 is_printable(error.hint);
    return sound ? error : nonsense;
  }
  Contents contents;
  std::uint64_t machine = decoder.number();
  contents.machine = static_cast<Machine>(machine);
  contents.build_id = decoder.text(2 * MAX_BUILD_ID);
  contents.soname = decoder.text(MAX_SONAME);
  contents.other_prologues = decoder.number();
  contents.left_out = decoder.number();
  bool sound = kind == READ && machine <= static_cast<std::uint64_t>(Machine::aarch64) &&
               is_plain(contents.build_id, "") && is_soname(contents.soname);
  std::uint64_t count = decoder.number();
  for (std::uint64_t i = 0; sound && decoder.sound() && i < count; i++) {
    Function function;
    function.name = decoder.text(MAX_NAME);
    function.address = decoder.number();
    function.offset = decoder.number();
    function.size = decoder.number();
    function.code = decoder.bytes(MAX_CODE);
    sound = is_function_name(function.name) && function.offset < file_size;
    contents.functions.push_back(std::move(function));
  }
  count = decoder.number();
  for (std::uint64_t i = 0; sound && decoder.sound() && i < count; i++) {
    StaticProbe probe;
    probe.name = decoder.text(MAX_NAME);
    probe.offset = decoder.number();
    probe.semaphore = decoder.number();
    probe.arguments = decoder.text(MAX_ARGUMENTS);
    sound = is_probe_name(probe.name) && is_probe_arguments(probe.arguments) &&
            probe.offset < file_size && probe.semaphore < file_size;
    contents.probes.push_back(std::move(probe));
  }
  if (!sound || !decoder.at_end()) return nonsense;
  return contents;
}

}  // namespace cudabpf::elf
