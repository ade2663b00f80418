#include "util/elf/elf.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "sample_library.hpp"
#include "support/temporary_folder.hpp"
#include "util/system/procfs.hpp"

using namespace cudabpf;
using namespace sample_library;
namespace fs = std::filesystem;

namespace {

Bytes read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  Bytes bytes;
  append_text(bytes, text.str());
  return bytes;
}

// Finds files that this test program has mapped, by the beginning of their names.
std::string mapped_library(std::string_view name) {
  for (const Mapping& mapping : Procfs().maps(getpid())) {
    if (fs::path(mapping.path).filename().string().starts_with(name)) return mapping.path;
  }
  return {};
}

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return lines;
  char* line = nullptr;
  std::size_t capacity = 0;
  while (getline(&line, &capacity, pipe) > 0) lines.emplace_back(line);
  free(line);
  pclose(pipe);
  return lines;
}

}  // namespace

TEST_CASE("A library's functions come with their offsets in the file") {
  for (bool with_sections : {true, false}) {
    for (bool with_gnu_hash : {true, false}) {
      CAPTURE(with_sections, with_gnu_hash);
      Fixture fixture(
          {
              {"cuInit", Fixture::CODE_ADDRESS},
              {"cuMemAlloc_v2", Fixture::CODE_ADDRESS + 0x20, 7, STT_FUNC, STB_WEAK},
              {"other", Fixture::CODE_ADDRESS + 0x30},
              {"cuIndirect", Fixture::CODE_ADDRESS + 0xf8, 0, STT_GNU_IFUNC},
              {"cuProtected", Fixture::CODE_ADDRESS, 1, STT_FUNC, STB_GLOBAL, STV_PROTECTED},
              {"cuVersioned@@V_1", Fixture::CODE_ADDRESS + 0x40},
          },
          with_gnu_hash);
      if (!with_sections) fixture.remove_section_headers();
      elf::Image image = parse(fixture.bytes);
      CHECK(image.machine() == elf::Machine::x86_64);
      CHECK(image.soname() == "libfixture.so.1");
      CHECK(image.build_id() == "001fabcdef");

      std::vector<elf::Function> functions = image.functions("cu");
      CHECK(names(functions) ==
            Names{"cuInit", "cuMemAlloc_v2", "cuIndirect", "cuProtected", "cuVersioned"});
      const elf::Function& init = functions[0];
      CHECK(init.address == Fixture::CODE_ADDRESS);
      CHECK(init.offset == fixture.code);
      CHECK(init.size == 16);
      CHECK(functions[1].offset == fixture.code + 0x20);
      CHECK(functions[1].size == 7);
      CHECK(functions[3].offset == init.offset);

      CHECK(image.functions("").size() == 6);
      CHECK(names(image.functions("cuMem")) == Names{"cuMemAlloc_v2"});
      CHECK(image.functions("cuInitX").empty());
    }
  }
}

TEST_CASE("Only exported, defined functions in executable segments count") {
  constexpr std::uint64_t CODE = Fixture::CODE_ADDRESS;
  for (bool with_sections : {true, false}) {
    Fixture fixture({
        {"object", CODE, 8, STT_OBJECT},
        {"untyped", CODE, 8, STT_NOTYPE},
        {"tls", CODE, 8, STT_TLS},
        {"local", CODE, 8, STT_FUNC, STB_LOCAL},
        {"unique", CODE, 8, STT_FUNC, STB_GNU_UNIQUE},
        {"hidden", CODE, 8, STT_FUNC, STB_GLOBAL, STV_HIDDEN},
        {"internal", CODE, 8, STT_FUNC, STB_GLOBAL, STV_INTERNAL},
        {"undefined", CODE, 8, STT_FUNC, STB_GLOBAL, STV_DEFAULT, SHN_UNDEF},
        {"absolute", CODE, 8, STT_FUNC, STB_GLOBAL, STV_DEFAULT, SHN_ABS},
        {"in_data", Fixture::DATA_ADDRESS, 8},
        {"nowhere", 0x123456789, 8},
        {"before", CODE - 1, 8},
        {"behind", CODE + Fixture::CODE_SIZE, 8},
        {"last", CODE + Fixture::CODE_SIZE - 1, 8},
        {"", CODE, 8},
    });
    if (!with_sections) fixture.remove_section_headers();
    CHECK(names(parse(fixture.bytes).functions("")) == Names{"last"});
  }
}

TEST_CASE("The first bytes of a function can be looked at") {
  constexpr std::uint64_t CODE = Fixture::CODE_ADDRESS;
  Fixture fixture({{"begin", CODE}, {"end", CODE + Fixture::CODE_SIZE - 3}});
  elf::Image image = parse(fixture.bytes);
  std::vector<elf::Function> functions = image.functions("");
  REQUIRE(functions.size() == 2);
  CHECK(image.code(functions[0]).size() == 16);
  auto bytes = image.code(functions[0], 2);
  CHECK(Bytes(bytes.begin(), bytes.end()) == Bytes{std::byte{0}, std::byte{1}});
  bytes = image.code(functions[1]);
  CHECK(Bytes(bytes.begin(), bytes.end()) ==
        Bytes{std::byte{0xfd}, std::byte{0xfe}, std::byte{0xff}});
  CHECK(image.code({.name = "nowhere", .address = 1}).empty());
}

TEST_CASE("An AArch64 library, and a program, are read as well") {
  Fixture fixture(TWO);
  header(fixture.bytes).e_machine = EM_AARCH64;
  header(fixture.bytes).e_type = ET_EXEC;
  CHECK(parse(fixture.bytes).machine() == elf::Machine::aarch64);
}

TEST_CASE("The count of sections may be in the first of them") {
  Fixture fixture(TWO);
  header(fixture.bytes).e_shnum = 0;
  fixture.section(0).sh_size = 4;
  at<Elf64_Phdr>(fixture.bytes, fixture.dynamic_segment).p_type = PT_NULL;
  elf::Image image = parse(fixture.bytes);
  CHECK(names(image.functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  CHECK(image.soname().empty());
}

TEST_CASE("A library without exports has no functions, and is fine") {
  Fixture fixture({});
  CHECK(parse(fixture.bytes).functions("").empty());
  fixture.remove_section_headers();
  CHECK(parse(fixture.bytes).functions("").empty());
}

TEST_CASE("A file is read, and what cannot be is refused") {
  TemporaryFolder folder;
  Fixture fixture(TWO);
  fs::path path = folder.write(
      "lib.so", {reinterpret_cast<const char*>(fixture.bytes.data()), fixture.bytes.size()});
  auto open_file = [](const fs::path& file) {
    return Fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  };

  Fd file = open_file(path);
  Result<elf::Image> library = elf::Image::open(file);
  REQUIRE(library);
  CHECK(names(library->functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  CHECK(library->code(library->functions("cu")[0]).size() == 16);
  // The file may be cut short: what was read stays, the rest cannot be read.
  fs::resize_file(path, 0);
  CHECK(names(library->functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  Result<elf::Image> cut = elf::Image::parse(elf::bytes_of_file(file.get(), fixture.bytes.size()));
  REQUIRE_FALSE(cut);

  auto refused = [&](const fs::path& other) {
    Result<elf::Image> result = elf::Image::open(open_file(other));
    return result ? "accepted" : result.error().message;
  };
  CHECK(refused(folder.write("empty", "")) == "an empty file, not a library");
  CHECK(refused(folder.write("text", "INPUT(x)")) == "a linker script, not a library");
  CHECK(refused(folder.path()) == "not a regular file");
  CHECK(refused("/dev/null") == "not a regular file");
  CHECK(refused(folder.path() / "missing") == "reading it: Bad file descriptor");
}

TEST_CASE("Real libraries read as readelf reads them, with section headers and without") {
  for (const char* name : {"libc.so", "libstdc++.so"}) {
    std::string path = mapped_library(name);
    if (path.empty()) SKIP("this program is linked statically: no " << name << " is mapped");
    std::vector<std::string> lines = lines_of("readelf -W --dyn-syms '" + path + "'");
    if (lines.empty()) SKIP("readelf (binutils) is not installed");
    CAPTURE(path);

    using Row = std::tuple<std::string, std::uint64_t, std::uint64_t>;
    std::multiset<Row> expected;
    for (const std::string& line : lines) {
      // "   12: 0000000000041d80    25 FUNC    GLOBAL DEFAULT   16 qsort@@GLIBC_2.2.5"
      std::istringstream fields(line);
      std::string number, value, size, type, binding, visibility, section, symbol;
      fields >> number >> value >> size >> type >> binding >> visibility >> section >> symbol;
      if (type != "FUNC" && type != "IFUNC") continue;
      if (binding != "GLOBAL" && binding != "WEAK") continue;
      if (section == "UND" || (visibility != "DEFAULT" && visibility != "PROTECTED")) continue;
      expected.emplace(symbol.substr(0, symbol.find('@')), std::stoull(value, nullptr, 16),
                       std::stoull(size, nullptr, 0));
    }
    REQUIRE(expected.size() > 1000);

    Bytes bytes = read_bytes(path);
    for (bool with_sections : {true, false}) {
      CAPTURE(with_sections);
      if (!with_sections) {
        header(bytes).e_shoff = 0;
        header(bytes).e_shnum = 0;
        header(bytes).e_shstrndx = 0;
      }
      elf::Image image = parse(bytes);
      std::multiset<Row> found;
      for (const elf::Function& f : image.functions("")) {
        found.emplace(f.name, f.address, f.size);
      }
      bool same = found == expected;
      CHECK(same);
      CHECK(found.size() == expected.size());

      CHECK(fs::path(path).filename().string().starts_with(image.soname()));
      std::string notes;
      for (const std::string& line : lines_of("readelf -n '" + path + "'")) notes += line;
      CHECK(image.build_id().size() == 40);
      CHECK(notes.find("Build ID: " + image.build_id()) != notes.npos);
    }
  }
}

TEST_CASE("Offsets are those at which the kernel mapped the code") {
  std::string path = mapped_library("libc.so");
  if (path.empty()) SKIP("this program is linked statically: no libc.so is mapped");
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Result<elf::Image> library = elf::Image::open(fd);
  REQUIRE(library);
  // The C library's own function, if a sanitizer's comes before it.
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  for (const char* name : {"qsort", "getenv", "fopen64", "printf"}) {
    CAPTURE(name);
    auto address = reinterpret_cast<std::uint64_t>(dlsym(handle, name));
    REQUIRE(address != 0);
    std::set<std::uint64_t> offsets;
    for (const elf::Function& function : library->functions(name)) {
      if (function.name == name) offsets.insert(function.offset);
    }
    REQUIRE(offsets.size() == 1);
    for (const Mapping& mapping : Procfs().maps(getpid())) {
      if (address < mapping.start || address >= mapping.end) continue;
      CHECK(mapping.path == path);
      CHECK(*offsets.begin() == mapping.offset + (address - mapping.start));
    }
  }
  dlclose(handle);
}
