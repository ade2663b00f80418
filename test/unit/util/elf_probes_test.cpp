// USDT probes in a library's notes.
#include <string>

#include "sample_library.hpp"
#include "util/elf/elf_contents.hpp"

using namespace cudabpf;
using namespace sample_library;

namespace {

constexpr std::string_view PROBE_OWNER("stapsdt\0", 8);

struct Note {
  std::uint64_t place = Fixture::CODE_ADDRESS + 4, base = 0, semaphore = 0;
  std::string text = std::string("pytorch\0malloc\0008@%rax 4@$1\0", 27);
  std::uint32_t type = 3;
  std::uint32_t owner_size = 8, more = 0;  // what it claims to have besides its content
};

// Adds a section with these notes, and returns the library.
Bytes with_notes(const std::vector<Note>& notes, std::uint64_t base_section = 0) {
  Fixture fixture(TWO);
  Bytes& bytes = fixture.bytes;
  auto aligned = [&] { bytes.resize((bytes.size() + 3) / 4 * 4); };
  std::size_t names = append_text(bytes, std::string_view("\0.stapsdt.base\0", 15));
  aligned();
  std::size_t begin = bytes.size();
  for (const Note& note : notes) {
    auto content = static_cast<std::uint32_t>(24 + note.text.size());
    append(bytes, Elf64_Nhdr{note.owner_size, content + note.more, note.type});
    append_text(bytes, PROBE_OWNER);
    append(bytes, note.place);
    append(bytes, note.base);
    append(bytes, note.semaphore);
    append_text(bytes, note.text);
    aligned();
  }
  std::size_t size = bytes.size() - begin;
  bytes.resize((bytes.size() + 7) / 8 * 8);
  std::size_t sections = bytes.size();
  for (std::size_t i = 0; i < 4; i++) append(bytes, Elf64_Shdr(fixture.section(i)));
  Elf64_Shdr section{};
  section.sh_type = SHT_NOTE;
  section.sh_offset = begin;
  section.sh_size = size;
  append(bytes, section);
  section = {};
  section.sh_type = SHT_STRTAB;
  section.sh_offset = names;
  section.sh_size = 15;
  append(bytes, section);
  section = {};
  section.sh_name = 1;
  section.sh_type = base_section ? SHT_PROGBITS : SHT_NULL;
  section.sh_addr = base_section;
  append(bytes, section);
  header(bytes).e_shoff = sections;
  header(bytes).e_shnum = 7;
  header(bytes).e_shstrndx = 5;
  return bytes;
}

std::vector<elf::StaticProbe> probes(const Bytes& bytes, std::uint64_t* left_out = nullptr) {
  return parse(bytes).static_probes("pytorch:", left_out);
}

}  // namespace

TEST_CASE("A USDT probe's name, its place and its semaphore in the file, and its arguments") {
  Note with_semaphore{.semaphore = Fixture::DATA_ADDRESS + 16};
  Note other{.text = std::string("ruby\0malloc\0\0", 13)};
  auto found = probes(with_notes({Note{}, other, with_semaphore}));
  REQUIRE(found.size() == 2);
  Fixture fixture(TWO);
  CHECK(found[0].name == "pytorch:malloc");
  CHECK(found[0].offset == fixture.code + 4);
  CHECK(found[0].semaphore == 0);
  CHECK(found[0].arguments == "8@%rax 4@$1");
  CHECK(found[1].semaphore == 16);
}

TEST_CASE("Where code was moved, the note's base says how far") {
  Note moved{.place = 0x10, .base = 0x9000};
  auto found = probes(with_notes({moved}, 0x9000 + Fixture::CODE_ADDRESS));
  REQUIRE(found.size() == 1);
  CHECK(found[0].offset == Fixture(TWO).code + 0x10);
}

TEST_CASE("Notes that are not sound are passed over, or counted") {
  std::uint64_t left_out = 0;
  auto count = [&](Note note) {
    left_out = 0;
    return probes(with_notes({std::move(note)}), &left_out).size();
  };
  CHECK(count({}) == 1);
  CHECK(count({.place = 1}) == 0);
  CHECK(left_out == 1);
  CHECK(count({.place = Fixture::DATA_ADDRESS}) == 0);  // no code
  CHECK(left_out == 1);
  CHECK(count({.semaphore = ~std::uint64_t{0}}) == 0);
  CHECK(left_out == 1);
  CHECK(count({.text = "pytorch"}) == 0);
  CHECK(count({.text = std::string("pytorch\0malloc\0", 15)}) == 0);
  CHECK(count({.type = 4}) == 0);
  CHECK(count({.owner_size = ~std::uint32_t{0}}) == 0);
  CHECK(count({.more = ~std::uint32_t{0} - 100}) == 0);
  CHECK(left_out == 0);
}

TEST_CASE("Another process's answer may hold any probe; none that is not sound is believed") {
  elf::Contents contents;
  contents.probes.push_back(
      {.name = "pytorch:free", .offset = 4, .semaphore = 8, .arguments = "8@-16(%rbp,%rax,8)"});
  auto decoded = [&](auto change) {
    elf::Contents changed = contents;
    change(changed.probes[0]);
    return bool(elf::decode(elf::encode(changed), 100));
  };
  CHECK(decoded([](auto&) {}));
  CHECK_FALSE(decoded([](auto& probe) { probe.name = "free"; }));
  CHECK_FALSE(decoded([](auto& probe) { probe.name = "a:\n"; }));
  CHECK_FALSE(decoded([](auto& probe) { probe.offset = 100; }));
  CHECK_FALSE(decoded([](auto& probe) { probe.semaphore = 100; }));
  CHECK_FALSE(decoded([](auto& probe) { probe.arguments = "8@\""; }));
  CHECK_FALSE(decoded([](auto& probe) { probe.arguments.assign(1000, '8'); }));
}
