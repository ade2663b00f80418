#include "cli/request/recordable.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using cudabpf::cli::why_not_recordable;

namespace {

constexpr std::size_t PART_OF_A_PAGE = 512;

std::string program_of(std::initializer_list<Elf64_Word> parts, Elf64_Half machine = EM_X86_64) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_type = ET_DYN;
  header.e_machine = machine;
  header.e_phoff = sizeof(header);
  header.e_phnum = static_cast<Elf64_Half>(parts.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  for (Elf64_Word type : parts) {
    Elf64_Phdr part{};
    part.p_type = type;
    bytes.append(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  return bytes + std::string(PART_OF_A_PAGE, '\0');
}

struct Programs {
  std::string make(const std::string& name, const std::string& bytes, mode_t mode = 0755) {
    std::string path = folder.path() / name;
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  std::string why(const std::string& path, uid_t user = geteuid()) {
    return why_not_recordable(path, {"PATH=" + folder.path().string()}, user);
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_CASE("A program that has a dynamic linker can be recorded from inside") {
  Programs p;
  CHECK(p.why(p.make("app", program_of({PT_PHDR, PT_INTERP, PT_LOAD}))).empty());
  CHECK(why_not_recordable("/proc/self/exe", {}, geteuid()).empty());
}

TEST_CASE("A static program and one for another machine cannot, and the reason names the file") {
  Programs p;
  std::string path = p.make("app", program_of({PT_LOAD, PT_DYNAMIC}));
  CHECK_THAT(p.why(path), ContainsSubstring(path + " is linked statically"));
  path = p.make("app", program_of({PT_INTERP}, EM_AARCH64));
  CHECK_THAT(p.why(path), ContainsSubstring("not an x86-64 program"));
  std::string narrow = program_of({PT_INTERP});
  narrow[EI_CLASS] = ELFCLASS32;
  CHECK_THAT(p.why(p.make("app", narrow)), ContainsSubstring("not an x86-64 program"));
  CHECK_THAT(p.why(p.make("app", ELFMAG)), ContainsSubstring("not an x86-64 program"));
}

TEST_CASE("A dynamic linker that is called by its name loads programs that can be recorded") {
  Programs p;
  CHECK(p.why(p.make("ld-linux-x86-64.so.2", program_of({PT_LOAD}))).empty());
}

TEST_CASE("A script can be recorded if its interpreter can") {
  Programs p;
  p.make("dynamic", program_of({PT_INTERP}));
  std::string fixed = p.make("static", program_of({PT_LOAD}));
  CHECK(p.why(p.make("a", "#!/usr/bin/env dynamic\n")).empty());
  CHECK(p.why(p.make("b", "#!/usr/bin/env -S A=b dynamic -u\nimport x\n")).empty());
  CHECK_THAT(p.why(p.make("c", "#!/usr/bin/env static\n")), ContainsSubstring(fixed));
  std::string nested = p.make("d", "#! " + fixed + " -x\n");
  CHECK_THAT(p.why(p.make("e", "#!" + nested)), ContainsSubstring(fixed));
  CHECK(p.why(p.make("f", "#!" + (p.folder.path() / "f\n").string()))
            .empty());  // the kernel refuses it
}

TEST_CASE("Nothing is said of a file that is no program or cannot be read") {
  Programs p;
  CHECK(p.why("/no/such/file").empty());
  CHECK(p.why("/").empty());
  CHECK(p.why(p.make("text", "hello\n")).empty());
  CHECK(p.why(p.make("empty", "")).empty());
  std::string beyond = program_of({PT_LOAD});
  Elf64_Ehdr header{};
  std::memcpy(&header, beyond.data(), sizeof(header));
  header.e_phoff = 1 << 20;
  std::memcpy(beyond.data(), &header, sizeof(header));
  CHECK(p.why(p.make("odd", beyond)).empty());
}

TEST_CASE("A program that gets rights by its file cannot be recorded from inside") {
  Programs p;
  std::string path = p.make("app", program_of({PT_INTERP}), 04755);
  CHECK(p.why(path).empty());  // its owner gets none
  CHECK_THAT(p.why(path, geteuid() + 1), ContainsSubstring("set-uid"));
  chmod(path.c_str(), 02755);
  CHECK_THAT(p.why(path), ContainsSubstring("set-gid"));
}
