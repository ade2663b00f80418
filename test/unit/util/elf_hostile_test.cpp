// Files that are broken ELF, or not ELF at all.
#include <string>
#include <vector>

#include "sample_library.hpp"

using namespace cudabpf;
using namespace sample_library;

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
    Fixture fixture(TWO);
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
  Fixture fixture(TWO);
  for (std::size_t size = 4; size < fixture.code + Fixture::CODE_SIZE; size++) {
    CAPTURE(size);
    Bytes cut(fixture.bytes.begin(), fixture.bytes.begin() + static_cast<ptrdiff_t>(size));
    CHECK(refusal(cut).starts_with("truncated: "));
  }
  // Section headers come last, and are not needed; but without them and without the dynamic
  // section...
  Bytes cut(fixture.bytes.begin(),
            fixture.bytes.begin() + static_cast<ptrdiff_t>(fixture.sections));
  CHECK(names(parse(cut).functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  at<Elf64_Phdr>(cut, fixture.dynamic_segment).p_type = PT_NULL;
  CHECK(refusal(cut) ==
        "truncated: section headers end beyond the file, and its dynamic section names no "
        "symbols either");
}

TEST_CASE("Nonsense in the section headers is passed over for the dynamic section") {
  Fixture fixture(TWO);
  SECTION("entries of another size") { header(fixture.bytes).e_shentsize = 40; }
  SECTION("beyond the file") { header(fixture.bytes).e_shoff = fixture.bytes.size() - 8; }
  SECTION("far beyond") { header(fixture.bytes).e_shoff = ~std::uint64_t{0} - 8; }
  SECTION("too many") { header(fixture.bytes).e_shnum = 0xffff; }
  SECTION("a count in the first section that is absurd") {
    header(fixture.bytes).e_shnum = 0;
    fixture.section(0).sh_size = ~std::uint64_t{0} / 32;
  }
  SECTION("no symbol table") { fixture.section(2).sh_type = SHT_NOBITS; }
  SECTION("symbols of another size") { fixture.section(2).sh_entsize = 16; }
  SECTION("symbols beyond the file") { fixture.section(2).sh_size = ~std::uint64_t{0}; }
  SECTION("symbols elsewhere than where the loader looks") { fixture.section(2).sh_offset += 24; }
  SECTION("names beyond the file") { fixture.section(3).sh_offset = ~std::uint64_t{0}; }
  SECTION("names in no section") { fixture.section(2).sh_link = 99; }
  SECTION("names that are none") { fixture.section(3).sh_type = SHT_PROGBITS; }
  elf::Image image = parse(fixture.bytes);
  CHECK(names(image.functions("cu")) == Names{"cuInit", "cuMemAlloc_v2"});
  CHECK(image.soname() == "libfixture.so.1");
}

TEST_CASE("A dynamic section that leads nowhere is refused") {
  constexpr std::size_t HASH = 1, STRINGS = 2, SYMBOLS = 3, STRINGS_SIZE = 4;
  Fixture fixture(TWO);
  fixture.remove_section_headers();
  SECTION("symbols outside the file") { fixture.tag(SYMBOLS).d_un.d_ptr = ~std::uint64_t{0}; }
  SECTION("no symbols") { fixture.tag(SYMBOLS).d_tag = DT_DEBUG; }
  SECTION("no names") { fixture.tag(STRINGS).d_tag = DT_DEBUG; }
  SECTION("names that end beyond the file") { fixture.tag(STRINGS_SIZE).d_un.d_val = 1 << 30; }
  SECTION("no hash table") { fixture.tag(HASH).d_tag = DT_DEBUG; }
  SECTION("a hash table outside the file") { fixture.tag(HASH).d_un.d_ptr = 1; }
  SECTION("a hash table with more buckets than the file holds") {
    at<std::uint32_t>(fixture.bytes, fixture.gnu_hash) = 0xffffffff;
  }
  SECTION("a hash table with a chain that has no end") {
    for (std::size_t i = fixture.gnu_hash + 32; i < fixture.bytes.size(); i++) {
      fixture.bytes[i] = std::byte{0};
    }
    at<std::uint32_t>(fixture.bytes, fixture.gnu_hash + 24) = 1;
  }
  SECTION("a bucket that points far beyond the chains") {
    at<std::uint32_t>(fixture.bytes, fixture.gnu_hash + 24) = 0xfffffff0;
  }
  SECTION("an old hash table with more symbols than the file holds") {
    fixture.tag(HASH).d_tag = DT_HASH;
    fixture.tag(HASH).d_un.d_ptr = Fixture::DATA_ADDRESS + fixture.hash;
    at<std::uint32_t>(fixture.bytes, fixture.hash + 4) = 0xffffffff;
  }
  CHECK(refusal(fixture.bytes) ==
        "stripped of its section headers, and its dynamic section names no symbols either");
}

TEST_CASE("Names are read within bounds, and add up to no more than the file") {
  SECTION("a name that begins beyond the table") {
    Fixture fixture(TWO);
    at<Elf64_Sym>(fixture.bytes, fixture.symbols + sizeof(Elf64_Sym)).st_name = 0xffffffff;
    CHECK(names(parse(fixture.bytes).functions("")) == Names{"cuMemAlloc_v2"});
  }
  SECTION("a name that the table's end cuts off") {
    Fixture fixture(TWO);
    fixture.section(3).sh_size -= 1;  // the last name's NUL
    CHECK(names(parse(fixture.bytes).functions("")) == Names{"cuInit"});
  }
  SECTION("a name of absurd length") {
    Fixture fixture({{std::string(5000, 'x'), Fixture::CODE_ADDRESS},
                     {std::string(4000, 'y'), Fixture::CODE_ADDRESS}});
    CHECK(names(parse(fixture.bytes).functions("")) == Names{std::string(4000, 'y')});
  }
  SECTION("one long name for many symbols") {
    std::vector<Symbol> many(1000, {"c", Fixture::CODE_ADDRESS});
    many[0].name = std::string(4000, 'c');
    Fixture fixture(many);
    for (std::size_t i = 1; i <= many.size(); i++) {
      at<Elf64_Sym>(fixture.bytes, fixture.symbols + i * sizeof(Elf64_Sym)).st_name = 17;
    }
    CHECK(parse(fixture.bytes).functions("c").size() == fixture.bytes.size() / 4000);
  }
}

TEST_CASE("Notes are read within bounds") {
  Fixture fixture(TWO);
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
    at<Elf64_Phdr>(fixture.bytes, fixture.note_segment).p_filesz = ~std::uint64_t{0};
  }
  elf::Image image = parse(fixture.bytes);
  CHECK(image.build_id().empty());
  CHECK(image.functions("cu").size() == 2);
}

TEST_CASE("Too many segments are refused") {
  Fixture fixture(TWO);
  Bytes& bytes = fixture.bytes;
  Elf64_Phdr code = at<Elf64_Phdr>(bytes, fixture.load_code);
  header(bytes).e_phoff = bytes.size();
  header(bytes).e_phnum = 300;
  for (int i = 0; i < 300; i++) append(bytes, code);
  CHECK(refusal(bytes) == "corrupt: too many segments");
  header(bytes).e_phoff = ~std::uint64_t{0} - 100;
  CHECK(refusal(bytes) == "truncated: program headers end beyond the file");
}
