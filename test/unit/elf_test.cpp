#include "util/elf.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "temporary_folder.hpp"
#include "util/procfs.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
T& at(Bytes& bytes, size_t offset) {
  REQUIRE(offset + sizeof(T) <= bytes.size());
  return *reinterpret_cast<T*>(bytes.data() + offset);
}
Elf64_Ehdr& header(Bytes& bytes) { return at<Elf64_Ehdr>(bytes, 0); }

template <typename T>
size_t append(Bytes& bytes, const T& value) {
  size_t offset = bytes.size();
  auto raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
  return offset;
}
size_t append_text(Bytes& bytes, std::string_view text) {
  size_t offset = bytes.size();
  auto raw = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), raw, raw + text.size());
  return offset;
}

struct Symbol {
  std::string name;
  uint64_t value;
  uint64_t size = 16;
  unsigned type = STT_FUNC, binding = STB_GLOBAL, visibility = STV_DEFAULT;
  uint16_t section = 7;
};

// A small library. Its segments lie at addresses that are not their offsets, as in real ones.
struct Fixture {
  static constexpr uint64_t kDataAddress = 0x40000, kCodeAddress = 0x80000, kCodeSize = 0x100;

  Bytes bytes;
  size_t load_data, load_code, dynamic_segment, note_segment;  // program headers
  size_t symbols, strings, hash, gnu_hash, dynamic, note, code, sections;
  size_t symbol_count, strings_size;

  explicit Fixture(const std::vector<Symbol>& exported, bool with_gnu_hash = true) {
    append(bytes, Elf64_Ehdr{});
    load_data = append(bytes, Elf64_Phdr{});
    load_code = append(bytes, Elf64_Phdr{});
    dynamic_segment = append(bytes, Elf64_Phdr{});
    note_segment = append(bytes, Elf64_Phdr{});

    std::string names("\0libfixture.so.1\0", 17);
    symbols = append(bytes, Elf64_Sym{});
    for (const Symbol& symbol : exported) {
      Elf64_Sym raw{};
      raw.st_name = static_cast<uint32_t>(names.size());
      raw.st_value = symbol.value;
      raw.st_size = symbol.size;
      raw.st_info = static_cast<unsigned char>(ELF64_ST_INFO(symbol.binding, symbol.type));
      raw.st_other = static_cast<unsigned char>(symbol.visibility);
      raw.st_shndx = symbol.section;
      append(bytes, raw);
      names += symbol.name + '\0';
    }
    symbol_count = exported.size() + 1;
    strings = append_text(bytes, names);
    strings_size = names.size();
    bytes.resize((bytes.size() + 7) / 8 * 8);

    hash = append(bytes, uint32_t{1});                   // buckets
    append(bytes, static_cast<uint32_t>(symbol_count));  // chains, one a symbol
    for (size_t i = 0; i <= symbol_count; i++) append(bytes, uint32_t{0});
    bytes.resize((bytes.size() + 7) / 8 * 8);
    // Two buckets: the second begins at symbol 2, where there are two.
    uint32_t second = symbol_count > 2 ? 2 : 0;
    gnu_hash = append(bytes, uint32_t{2});
    append(bytes, uint32_t{1});  // the first symbol that is hashed
    append(bytes, uint32_t{1});  // bloom words
    append(bytes, uint32_t{6});
    append(bytes, uint64_t{0});
    append(bytes, uint32_t{symbol_count > 1 ? 1u : 0u});
    append(bytes, second);
    for (size_t i = 1; i < symbol_count; i++) {
      bool last = i + 1 == symbol_count || i + 1 == second;
      append(bytes, static_cast<uint32_t>(0x1234560 | (last ? 1 : 0)));
    }
    bytes.resize((bytes.size() + 7) / 8 * 8);

    dynamic = bytes.size();
    auto tag = [&](int64_t name, uint64_t value) {
      Elf64_Dyn entry{};
      entry.d_tag = name;
      entry.d_un.d_val = value;
      append(bytes, entry);
    };
    tag(DT_SONAME, 1);
    tag(with_gnu_hash ? DT_GNU_HASH : DT_HASH, kDataAddress + (with_gnu_hash ? gnu_hash : hash));
    tag(DT_STRTAB, kDataAddress + strings);
    tag(DT_SYMTAB, kDataAddress + symbols);
    tag(DT_STRSZ, strings_size);
    tag(DT_NULL, 0);
    tag(DT_SONAME, 5);  // behind the end: not read
    size_t dynamic_size = bytes.size() - dynamic;

    note = append(bytes, Elf64_Nhdr{4, 4, NT_GNU_ABI_TAG});
    append_text(bytes, std::string_view("GNU\0abcd", 8));
    append(bytes, Elf64_Nhdr{4, 5, NT_GNU_BUILD_ID});
    append_text(bytes, std::string_view("GNU\0\x00\x1f\xab\xcd\xef\0\0\0", 12));
    size_t note_size = bytes.size() - note;

    code = bytes.size();
    for (size_t i = 0; i < kCodeSize; i++) bytes.push_back(static_cast<std::byte>(i));

    bytes.resize((bytes.size() + 7) / 8 * 8);
    sections = append(bytes, Elf64_Shdr{});
    auto section = [&](uint32_t type, size_t offset, size_t size, uint32_t link, size_t entry) {
      Elf64_Shdr raw{};
      raw.sh_type = type;
      raw.sh_offset = offset;
      raw.sh_size = size;
      raw.sh_link = link;
      raw.sh_entsize = entry;
      append(bytes, raw);
    };
    section(SHT_PROGBITS, code, kCodeSize, 0, 0);
    section(SHT_DYNSYM, symbols, symbol_count * sizeof(Elf64_Sym), 3, sizeof(Elf64_Sym));
    section(SHT_STRTAB, strings, strings_size, 0, 0);

    auto segment = [&](size_t where, uint32_t type, uint32_t flags, size_t offset, uint64_t address,
                       size_t size, uint64_t align) {
      Elf64_Phdr raw{};
      raw.p_type = type;
      raw.p_flags = flags;
      raw.p_offset = offset;
      raw.p_vaddr = address;
      raw.p_filesz = raw.p_memsz = size;
      raw.p_align = align;
      at<Elf64_Phdr>(bytes, where) = raw;
    };
    segment(load_data, PT_LOAD, PF_R, 0, kDataAddress, note, 0x1000);
    segment(load_code, PT_LOAD, PF_R | PF_X, code, kCodeAddress, kCodeSize, 0x1000);
    segment(dynamic_segment, PT_DYNAMIC, PF_R, dynamic, kDataAddress + dynamic, dynamic_size, 8);
    segment(note_segment, PT_NOTE, PF_R, note, 0, note_size, 4);

    Elf64_Ehdr& head = header(bytes);
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_DYN;
    head.e_machine = EM_X86_64;
    head.e_phoff = sizeof(Elf64_Ehdr);
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 4;
    head.e_shoff = sections;
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = 4;
  }

  void remove_section_headers() {
    header(bytes).e_shoff = 0;
    header(bytes).e_shnum = 0;
  }
  Elf64_Dyn& tag(size_t index) { return at<Elf64_Dyn>(bytes, dynamic + index * sizeof(Elf64_Dyn)); }
  Elf64_Shdr& section(size_t index) {
    return at<Elf64_Shdr>(bytes, sections + index * sizeof(Elf64_Shdr));
  }
};

const std::vector<Symbol> kTwo = {{"cuInit", Fixture::kCodeAddress},
                                  {"cuMemAlloc_v2", Fixture::kCodeAddress + 0x20}};

elf::Image parse(const Bytes& bytes) {
  Result<elf::Image> image = elf::Image::parse(bytes);
  INFO((image ? "" : image.error().message));
  REQUIRE(image);
  return *image;
}
std::string refusal(const Bytes& bytes) {
  Result<elf::Image> image = elf::Image::parse(bytes);
  return image ? "accepted" : image.error().message;
}
std::string refusal(std::string_view text) {
  Bytes bytes;
  append_text(bytes, text);
  return refusal(bytes);
}
std::vector<std::string> names(const std::vector<elf::Function>& functions) {
  std::vector<std::string> found;
  for (const elf::Function& function : functions) found.push_back(function.name);
  return found;
}
using Names = std::vector<std::string>;

Bytes read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  Bytes bytes;
  append_text(bytes, text.str());
  return bytes;
}

// The files that this test program has mapped, by the beginning of their names.
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
  size_t capacity = 0;
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
              {"cuInit", Fixture::kCodeAddress},
              {"cuMemAlloc_v2", Fixture::kCodeAddress + 0x20, 7, STT_FUNC, STB_WEAK},
              {"other", Fixture::kCodeAddress + 0x30},
              {"cuIndirect", Fixture::kCodeAddress + 0xf8, 0, STT_GNU_IFUNC},
              {"cuProtected", Fixture::kCodeAddress, 1, STT_FUNC, STB_GLOBAL, STV_PROTECTED},
              {"cuVersioned@@V_1", Fixture::kCodeAddress + 0x40},
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
      CHECK(init.address == Fixture::kCodeAddress);
      CHECK(init.offset == fixture.code);
      CHECK(init.size == 16);
      CHECK_FALSE(init.weak);
      CHECK_FALSE(init.ifunc);
      CHECK(functions[1].offset == fixture.code + 0x20);
      CHECK(functions[1].size == 7);
      CHECK(functions[1].weak);
      CHECK(functions[2].ifunc);
      CHECK(functions[3].offset == init.offset);

      CHECK(image.functions("").size() == 6);
      CHECK(names(image.functions("cuMem")) == Names{"cuMemAlloc_v2"});
      CHECK(image.functions("cuInitX").empty());
    }
  }
}

TEST_CASE("Only exported, defined functions in executable segments count") {
  constexpr uint64_t kCode = Fixture::kCodeAddress;
  for (bool with_sections : {true, false}) {
    Fixture fixture({
        {"object", kCode, 8, STT_OBJECT},
        {"untyped", kCode, 8, STT_NOTYPE},
        {"tls", kCode, 8, STT_TLS},
        {"local", kCode, 8, STT_FUNC, STB_LOCAL},
        {"unique", kCode, 8, STT_FUNC, STB_GNU_UNIQUE},
        {"hidden", kCode, 8, STT_FUNC, STB_GLOBAL, STV_HIDDEN},
        {"internal", kCode, 8, STT_FUNC, STB_GLOBAL, STV_INTERNAL},
        {"undefined", kCode, 8, STT_FUNC, STB_GLOBAL, STV_DEFAULT, SHN_UNDEF},
        {"absolute", kCode, 8, STT_FUNC, STB_GLOBAL, STV_DEFAULT, SHN_ABS},
        {"in_data", Fixture::kDataAddress, 8},
        {"nowhere", 0x123456789, 8},
        {"before", kCode - 1, 8},
        {"behind", kCode + Fixture::kCodeSize, 8},
        {"last", kCode + Fixture::kCodeSize - 1, 8},
        {"", kCode, 8},
    });
    if (!with_sections) fixture.remove_section_headers();
    CHECK(names(parse(fixture.bytes).functions("")) == Names{"last"});
  }
}

TEST_CASE("The first bytes of a function can be looked at") {
  constexpr uint64_t kCode = Fixture::kCodeAddress;
  Fixture fixture({{"begin", kCode}, {"end", kCode + Fixture::kCodeSize - 3}});
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
  Fixture fixture(kTwo);
  header(fixture.bytes).e_machine = EM_AARCH64;
  header(fixture.bytes).e_type = ET_EXEC;
  CHECK(parse(fixture.bytes).machine() == elf::Machine::aarch64);
  CHECK(elf::name_of(elf::Machine::aarch64) == "AArch64");
  CHECK(elf::name_of(elf::Machine::x86_64) == "x86-64");
}

TEST_CASE("Whatever is no library is refused by what it seems to be") {
  CHECK(refusal("") == "an empty file, not a library");
  CHECK(refusal("/* GNU ld script */\nGROUP ( /lib/libc.so.6 )\n") ==
        "a linker script, not a library");
  CHECK(refusal("INPUT(-lncurses)\n") == "a linker script, not a library");
  CHECK(refusal("hello\n") == "a text file, not a library");
  CHECK(refusal("#!/bin/sh\n") == "a script, not a library");
  CHECK(refusal("!<arch>\nx") == "a static archive (.a), not a library");
  CHECK(refusal("\x1f\x8b\x08") == "a compressed file (gzip), not a library");
  CHECK(refusal("PK\x03\x04zz") == "a zip archive, not a library");
  CHECK(refusal("MZ\x90") == "a Windows file, not a library");
  CHECK(refusal("\x01\x02\x03") == "not an ELF file");
  CHECK(refusal("\x7f"
                "ELF") == "truncated: the ELF header is incomplete");

  auto changed = [](auto change) {
    Fixture fixture(kTwo);
    change(header(fixture.bytes));
    return refusal(fixture.bytes);
  };
  CHECK(changed([](Elf64_Ehdr& head) { head.e_ident[EI_CLASS] = ELFCLASS32; }) ==
        "a 32-bit library; only 64-bit little-endian ELF files can be traced");
  CHECK(changed([](Elf64_Ehdr& head) { head.e_ident[EI_CLASS] = 9; }) ==
        "corrupt: its ELF class is neither 32 nor 64-bit");
  CHECK(changed([](Elf64_Ehdr& head) { head.e_ident[EI_DATA] = ELFDATA2MSB; }) ==
        "a big-endian file; only 64-bit little-endian ELF files can be traced");
  CHECK(changed([](Elf64_Ehdr& head) { head.e_machine = EM_RISCV; }) ==
        "made for RISC-V, not for x86-64 or AArch64");
  CHECK(changed([](Elf64_Ehdr& head) { head.e_machine = 9999; }) ==
        "made for machine 9999, not for x86-64 or AArch64");
  CHECK(changed([](Elf64_Ehdr& head) { head.e_type = ET_REL; }) ==
        "an object file (.o), not a library");
  CHECK(changed([](Elf64_Ehdr& head) { head.e_type = ET_CORE; }) == "a core dump, not a library");
  CHECK(changed([](Elf64_Ehdr& head) { head.e_type = 77; }) == "neither a library nor a program");
}

TEST_CASE("A truncated library is refused, wherever it is cut") {
  Fixture fixture(kTwo);
  for (size_t size = 4; size < fixture.code + Fixture::kCodeSize; size++) {
    CAPTURE(size);
    Bytes cut(fixture.bytes.begin(), fixture.bytes.begin() + static_cast<ptrdiff_t>(size));
    CHECK(refusal(cut).starts_with("truncated: "));
  }
  // Section headers are the last, and not needed; but without them and the dynamic section too...
  Bytes cut(fixture.bytes.begin(),
            fixture.bytes.begin() + static_cast<ptrdiff_t>(fixture.sections));
  CHECK(names(parse(cut).functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  at<Elf64_Phdr>(cut, fixture.dynamic_segment).p_type = PT_NULL;
  CHECK(refusal(cut) ==
        "truncated: section headers end beyond the file, and its dynamic section names no "
        "symbols either");
}

TEST_CASE("Nonsense in the section headers is passed over for the dynamic section") {
  Fixture fixture(kTwo);
  SECTION("entries of another size") { header(fixture.bytes).e_shentsize = 40; }
  SECTION("beyond the file") { header(fixture.bytes).e_shoff = fixture.bytes.size() - 8; }
  SECTION("far beyond") { header(fixture.bytes).e_shoff = ~uint64_t{0} - 8; }
  SECTION("too many") { header(fixture.bytes).e_shnum = 0xffff; }
  SECTION("a count in the first section that is absurd") {
    header(fixture.bytes).e_shnum = 0;
    fixture.section(0).sh_size = ~uint64_t{0} / 32;
  }
  SECTION("no symbol table") { fixture.section(2).sh_type = SHT_NOBITS; }
  SECTION("symbols of another size") { fixture.section(2).sh_entsize = 16; }
  SECTION("symbols beyond the file") { fixture.section(2).sh_size = ~uint64_t{0}; }
  SECTION("symbols elsewhere than where the loader looks") { fixture.section(2).sh_offset += 24; }
  SECTION("names beyond the file") { fixture.section(3).sh_offset = ~uint64_t{0}; }
  SECTION("names in no section") { fixture.section(2).sh_link = 99; }
  SECTION("names that are none") { fixture.section(3).sh_type = SHT_PROGBITS; }
  elf::Image image = parse(fixture.bytes);
  CHECK(names(image.functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  CHECK(image.soname() == "libfixture.so.1");
}

TEST_CASE("The count of sections may stand in the first of them") {
  Fixture fixture(kTwo);
  header(fixture.bytes).e_shnum = 0;
  fixture.section(0).sh_size = 4;
  at<Elf64_Phdr>(fixture.bytes, fixture.dynamic_segment).p_type = PT_NULL;
  elf::Image image = parse(fixture.bytes);
  CHECK(names(image.functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  CHECK(image.soname().empty());
}

TEST_CASE("A dynamic section that leads nowhere is refused") {
  constexpr size_t kHash = 1, kStrings = 2, kSymbols = 3, kStringsSize = 4;
  Fixture fixture(kTwo);
  fixture.remove_section_headers();
  SECTION("symbols outside the file") { fixture.tag(kSymbols).d_un.d_ptr = ~uint64_t{0}; }
  SECTION("no symbols") { fixture.tag(kSymbols).d_tag = DT_DEBUG; }
  SECTION("no names") { fixture.tag(kStrings).d_tag = DT_DEBUG; }
  SECTION("names that end beyond the file") { fixture.tag(kStringsSize).d_un.d_val = 1 << 30; }
  SECTION("no hash table") { fixture.tag(kHash).d_tag = DT_DEBUG; }
  SECTION("a hash table outside the file") { fixture.tag(kHash).d_un.d_ptr = 1; }
  SECTION("a hash table with more buckets than the file holds") {
    at<uint32_t>(fixture.bytes, fixture.gnu_hash) = 0xffffffff;
  }
  SECTION("a hash table with a chain that has no end") {
    for (size_t i = fixture.gnu_hash + 32; i < fixture.bytes.size(); i++) {
      fixture.bytes[i] = std::byte{0};
    }
    at<uint32_t>(fixture.bytes, fixture.gnu_hash + 24) = 1;
  }
  SECTION("a bucket that points far beyond the chains") {
    at<uint32_t>(fixture.bytes, fixture.gnu_hash + 24) = 0xfffffff0;
  }
  SECTION("an old hash table with more symbols than the file holds") {
    fixture.tag(kHash).d_tag = DT_HASH;
    fixture.tag(kHash).d_un.d_ptr = Fixture::kDataAddress + fixture.hash;
    at<uint32_t>(fixture.bytes, fixture.hash + 4) = 0xffffffff;
  }
  CHECK(refusal(fixture.bytes) ==
        "stripped of its section headers, and its dynamic section names no symbols either");
}

TEST_CASE("A library without exports has no functions, and is fine") {
  Fixture fixture({});
  CHECK(parse(fixture.bytes).functions("").empty());
  fixture.remove_section_headers();
  CHECK(parse(fixture.bytes).functions("").empty());
}

TEST_CASE("Names are read within bounds, and add up to no more than the file") {
  SECTION("a name that begins beyond the table") {
    Fixture fixture(kTwo);
    at<Elf64_Sym>(fixture.bytes, fixture.symbols + sizeof(Elf64_Sym)).st_name = 0xffffffff;
    CHECK(names(parse(fixture.bytes).functions("")) == Names{"cuMemAlloc_v2"});
  }
  SECTION("a name that the table's end cuts off") {
    Fixture fixture(kTwo);
    fixture.section(3).sh_size -= 1;  // the last name's NUL
    CHECK(names(parse(fixture.bytes).functions("")) == Names{"cuInit"});
  }
  SECTION("a name of absurd length") {
    Fixture fixture({{std::string(5000, 'x'), Fixture::kCodeAddress},
                     {std::string(4000, 'y'), Fixture::kCodeAddress}});
    CHECK(names(parse(fixture.bytes).functions("")) == Names{std::string(4000, 'y')});
  }
  SECTION("one long name for many symbols") {
    std::vector<Symbol> many(1000, {"c", Fixture::kCodeAddress});
    many[0].name = std::string(4000, 'c');
    Fixture fixture(many);
    for (size_t i = 1; i <= many.size(); i++) {
      at<Elf64_Sym>(fixture.bytes, fixture.symbols + i * sizeof(Elf64_Sym)).st_name = 17;
    }
    CHECK(parse(fixture.bytes).functions("c").size() == fixture.bytes.size() / 4000);
  }
}

TEST_CASE("Notes are read within bounds") {
  Fixture fixture(kTwo);
  auto note = [&]() -> Elf64_Nhdr& { return at<Elf64_Nhdr>(fixture.bytes, fixture.note); };
  SECTION("a first note that is larger than all of them") { note().n_descsz = 0xffffffff; }
  SECTION("a name that is larger") { note().n_namesz = 0xfffffff0; }
  SECTION("an absurdly long build-id") {
    at<Elf64_Nhdr>(fixture.bytes, fixture.note + 20).n_descsz = 65;
  }
  SECTION("another owner's note of the same number") {
    at<char>(fixture.bytes, fixture.note + 20 + 12) = 'X';
  }
  SECTION("a note segment beyond the file") {
    at<Elf64_Phdr>(fixture.bytes, fixture.note_segment).p_filesz = ~uint64_t{0};
  }
  elf::Image image = parse(fixture.bytes);
  CHECK(image.build_id().empty());
  CHECK(image.functions("cu").size() == 2);
}

TEST_CASE("Too many segments are refused") {
  Fixture fixture(kTwo);
  Bytes& bytes = fixture.bytes;
  Elf64_Phdr code = at<Elf64_Phdr>(bytes, fixture.load_code);
  header(bytes).e_phoff = bytes.size();
  header(bytes).e_phnum = 300;
  for (int i = 0; i < 300; i++) append(bytes, code);
  CHECK(refusal(bytes) == "corrupt: too many segments");
  header(bytes).e_phoff = ~uint64_t{0} - 100;
  CHECK(refusal(bytes) == "truncated: program headers end beyond the file");
}

TEST_CASE("A file is mapped, and what cannot be is refused") {
  TemporaryFolder folder;
  Fixture fixture(kTwo);
  fs::path path = folder.write(
      "lib.so", {reinterpret_cast<const char*>(fixture.bytes.data()), fixture.bytes.size()});
  auto open_file = [](const fs::path& file) {
    return Fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  };

  Result<elf::Library> mapped = elf::Library::map(open_file(path));
  REQUIRE(mapped);
  elf::Library library = std::move(*mapped);
  fs::remove(path);
  CHECK(names(library.image().functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  mapped = Error{"gone"};  // what was moved from unmaps nothing
  CHECK(library.image().functions("cu").size() == 2);

  auto refused = [&](const fs::path& file) {
    Result<elf::Library> result = elf::Library::map(open_file(file));
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

    using Row = std::tuple<std::string, uint64_t, uint64_t, bool, bool>;
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
                       std::stoull(size, nullptr, 0), binding == "WEAK", type == "IFUNC");
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
        found.emplace(f.name, f.address, f.size, f.weak, f.ifunc);
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
  Result<elf::Library> library = elf::Library::map(fd);
  REQUIRE(library);
  // The C library's own function, where a sanitizer's stands before it.
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(handle != nullptr);
  for (const char* name : {"qsort", "getenv", "fopen64", "printf"}) {
    CAPTURE(name);
    auto address = reinterpret_cast<uint64_t>(dlsym(handle, name));
    REQUIRE(address != 0);
    std::set<uint64_t> offsets;
    for (const elf::Function& function : library->image().functions(name)) {
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
