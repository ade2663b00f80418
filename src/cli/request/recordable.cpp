#include "cli/request/recordable.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>
#include <string_view>

#include "cli/request/program_path.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::cli {

namespace {

// The beginning of a program's file. Linkers put the program headers there.
struct Beginning {
  std::array<char, 8192> bytes{};
  std::size_t size = 0;

  std::string_view text() const { return {bytes.data(), size}; }
  template <typename T>
  bool read(std::size_t at, T& to) const {
    if (at > size || size - at < sizeof(to)) return false;
    std::memcpy(&to, bytes.data() + at, sizeof(to));
    return true;
  }
};

// What is set-uid for its own user gets no rights by it.
bool gets_rights(int fd, const struct stat& status, uid_t user) {
  return ((status.st_mode & S_ISUID) && status.st_uid != user) || (status.st_mode & S_ISGID) ||
         fgetxattr(fd, "security.capability", nullptr, 0) > 0;
}

// A dynamic linker that is called by name has none itself, but loads what does.
bool is_linker(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-2.");
}

std::string why_not_elf(const std::string& path, const Beginning& beginning) {
  Elf64_Ehdr header{};
  if (!beginning.read(0, header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != EM_X86_64)
    return fmt::format("{} is not an x86-64 program", path);
  for (std::size_t i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr part{};
    if (!beginning.read(header.e_phoff + i * sizeof(part), part)) return {};
    if (part.p_type == PT_INTERP) return {};
  }
  if (is_linker(path)) return {};
  return fmt::format("{} is linked statically: no library can be loaded into it", path);
}

// "#!/usr/bin/env -S python3 -u" names python3.
std::string interpreter(std::string_view line, const std::vector<std::string>& environment) {
  std::istringstream words{std::string(line.substr(2, line.find('\n') - 2))};
  std::string word;
  words >> word;
  if (word.ends_with("/env"))
    while (words >> word && (word.starts_with("-") || word.find('=') != std::string::npos)) {
    }
  return find_program(word, environment);
}

}  // namespace

std::string why_not_recordable(std::string program, const std::vector<std::string>& environment,
                               uid_t user) {
  constexpr int MAX_INTERPRETERS = 5;  // as many as the kernel follows
  for (int i = 0; i < MAX_INTERPRETERS; i++) {
    Fd file(open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    Beginning beginning;
    ssize_t got = pread(file.get(), beginning.bytes.data(), beginning.bytes.size(), 0);
    beginning.size = got > 0 ? static_cast<std::size_t>(got) : 0;
    if (!beginning.text().starts_with("#!")) {
      if (!beginning.text().starts_with(ELFMAG)) return {};
      if (gets_rights(file.get(), status, user))
        return fmt::format(
            "{} is set-uid, set-gid or has file capabilities: no library can be loaded into it by "
            "an environment variable",
            program);
      return why_not_elf(program, beginning);
    }
    program = interpreter(beginning.text(), environment);
  }
  return {};
}

}  // namespace cudabpf::cli
