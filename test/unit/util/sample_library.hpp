// A small ELF library, byte by byte, so that a test can break any of them; and what is read from
// it.
#pragma once

#include <elf.h>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "util/elf/elf.hpp"

namespace sample_library {

using namespace cudabpf;

using Bytes = std::vector<std::byte>;

template <typename T>
T& at(Bytes& bytes, std::size_t offset) {
  REQUIRE(offset + sizeof(T) <= bytes.size());
  return *reinterpret_cast<T*>(bytes.data() + offset);
}
inline Elf64_Ehdr& header(Bytes& bytes) { return at<Elf64_Ehdr>(bytes, 0); }

template <typename T>
std::size_t append(Bytes& bytes, const T& value) {
  std::size_t offset = bytes.size();
  auto raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
  return offset;
}
inline std::size_t append_text(Bytes& bytes, std::string_view text) {
  std::size_t offset = bytes.size();
  auto raw = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), raw, raw + text.size());
  return offset;
}

struct Symbol {
  std::string name;
  std::uint64_t value;
  std::uint64_t size = 16;
  unsigned type = STT_FUNC, binding = STB_GLOBAL, visibility = STV_DEFAULT;
  std::uint16_t section = 7;
};

// A small library. As in real ones, the addresses of its segments are not their offsets.
struct Fixture {
  static constexpr std::uint64_t DATA_ADDRESS = 0x40000, CODE_ADDRESS = 0x80000, CODE_SIZE = 0x100;

  Bytes bytes;
  std::size_t load_data, load_code, dynamic_segment, note_segment;  // program headers
  std::size_t symbols, strings, hash, gnu_hash, dynamic, note, code, sections;
  std::size_t symbol_count, strings_size;

  explicit Fixture(const std::vector<Symbol>& exported, bool with_gnu_hash = true) {
    append(bytes, Elf64_Ehdr{});
    load_data = append(bytes, Elf64_Phdr{});
    load_code = append(bytes, Elf64_Phdr{});
    dynamic_segment = append(bytes, Elf64_Phdr{});
    note_segment = append(bytes, Elf64_Phdr{});

    add_symbols(exported);
    add_hashes();
    add_dynamic(with_gnu_hash);
    add_notes();
    code = bytes.size();
    for (std::size_t i = 0; i < CODE_SIZE; i++) bytes.push_back(static_cast<std::byte>(i));
    add_sections();
    fill_segments();
    fill_header();
  }

  void remove_section_headers() {
    header(bytes).e_shoff = 0;
    header(bytes).e_shnum = 0;
  }
  Elf64_Dyn& tag(std::size_t index) {
    return at<Elf64_Dyn>(bytes, dynamic + index * sizeof(Elf64_Dyn));
  }
  Elf64_Shdr& section(std::size_t index) {
    return at<Elf64_Shdr>(bytes, sections + index * sizeof(Elf64_Shdr));
  }

 private:
  std::size_t dynamic_size, note_size;

  void align() { bytes.resize((bytes.size() + 7) / 8 * 8); }

  void add_symbols(const std::vector<Symbol>& exported) {
    std::string names("\0libfixture.so.1\0", 17);
    symbols = append(bytes, Elf64_Sym{});
    for (const Symbol& symbol : exported) {
      Elf64_Sym raw{};
      raw.st_name = static_cast<std::uint32_t>(names.size());
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
    align();
  }

  void add_hashes() {
    hash = append(bytes, std::uint32_t{1});                   // buckets
    append(bytes, static_cast<std::uint32_t>(symbol_count));  // chains, one per symbol
    for (std::size_t i = 0; i <= symbol_count; i++) append(bytes, std::uint32_t{0});
    align();
    // Two buckets: the second begins at symbol 2, where there are two.
    std::uint32_t second = symbol_count > 2 ? 2 : 0;
    gnu_hash = append(bytes, std::uint32_t{2});
    append(bytes, std::uint32_t{1});  // the first hashed symbol
    append(bytes, std::uint32_t{1});  // bloom words
    append(bytes, std::uint32_t{6});
    append(bytes, std::uint64_t{0});
    append(bytes, std::uint32_t{symbol_count > 1 ? 1u : 0u});
    append(bytes, second);
    for (std::size_t i = 1; i < symbol_count; i++) {
      bool last = i + 1 == symbol_count || i + 1 == second;
      append(bytes, static_cast<std::uint32_t>(0x1234560 | (last ? 1 : 0)));
    }
    align();
  }

  void add_dynamic(bool with_gnu_hash) {
    dynamic = bytes.size();
    auto tag = [&](std::int64_t name, std::uint64_t value) {
      Elf64_Dyn entry{};
      entry.d_tag = name;
      entry.d_un.d_val = value;
      append(bytes, entry);
    };
    tag(DT_SONAME, 1);
    tag(with_gnu_hash ? DT_GNU_HASH : DT_HASH, DATA_ADDRESS + (with_gnu_hash ? gnu_hash : hash));
    tag(DT_STRTAB, DATA_ADDRESS + strings);
    tag(DT_SYMTAB, DATA_ADDRESS + symbols);
    tag(DT_STRSZ, strings_size);
    tag(DT_NULL, 0);
    tag(DT_SONAME, 5);  // behind the end: not read
    dynamic_size = bytes.size() - dynamic;
  }

  void add_notes() {
    note = append(bytes, Elf64_Nhdr{4, 4, NT_GNU_ABI_TAG});
    append_text(bytes, std::string_view("GNU\0abcd", 8));
    append(bytes, Elf64_Nhdr{4, 5, NT_GNU_BUILD_ID});
    append_text(bytes, std::string_view("GNU\0\x00\x1f\xab\xcd\xef\0\0\0", 12));
    note_size = bytes.size() - note;
  }

  void add_sections() {
    align();
    sections = append(bytes, Elf64_Shdr{});
    auto section = [&](std::uint32_t type, std::size_t offset, std::size_t size, std::uint32_t link,
                       std::size_t entry) {
      Elf64_Shdr raw{};
      raw.sh_type = type;
      raw.sh_offset = offset;
      raw.sh_size = size;
      raw.sh_link = link;
      raw.sh_entsize = entry;
      append(bytes, raw);
    };
    section(SHT_PROGBITS, code, CODE_SIZE, 0, 0);
    section(SHT_DYNSYM, symbols, symbol_count * sizeof(Elf64_Sym), 3, sizeof(Elf64_Sym));
    section(SHT_STRTAB, strings, strings_size, 0, 0);
  }

  void fill_segments() {
    auto segment = [&](std::size_t where, std::uint32_t type, std::uint32_t flags,
                       std::size_t offset, std::uint64_t address, std::size_t size,
                       std::uint64_t align) {
      Elf64_Phdr raw{};
      raw.p_type = type;
      raw.p_flags = flags;
      raw.p_offset = offset;
      raw.p_vaddr = address;
      raw.p_filesz = raw.p_memsz = size;
      raw.p_align = align;
      at<Elf64_Phdr>(bytes, where) = raw;
    };
    segment(load_data, PT_LOAD, PF_R, 0, DATA_ADDRESS, note, 0x1000);
    segment(load_code, PT_LOAD, PF_R | PF_X, code, CODE_ADDRESS, CODE_SIZE, 0x1000);
    segment(dynamic_segment, PT_DYNAMIC, PF_R, dynamic, DATA_ADDRESS + dynamic, dynamic_size, 8);
    segment(note_segment, PT_NOTE, PF_R, note, 0, note_size, 4);
  }

  void fill_header() {
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
};

inline const std::vector<Symbol> TWO = {{"cuInit", Fixture::CODE_ADDRESS},
                                        {"cuMemAlloc_v2", Fixture::CODE_ADDRESS + 0x20}};

inline elf::Image parse(const Bytes& bytes) {
  Result<elf::Image> image = elf::Image::parse(elf::bytes_in_memory(bytes));
  INFO((image ? "" : image.error().message));
  REQUIRE(image);
  return *image;
}
inline std::string refusal(const Bytes& bytes) {
  Result<elf::Image> image = elf::Image::parse(elf::bytes_in_memory(bytes));
  return image ? "accepted" : image.error().message;
}
inline std::string refusal(std::string_view text) {
  Bytes bytes;
  append_text(bytes, text);
  return refusal(bytes);
}
inline std::vector<std::string> names(const std::vector<elf::Function>& functions) {
  std::vector<std::string> found;
  for (const elf::Function& function : functions) found.push_back(function.name);
  return found;
}
using Names = std::vector<std::string>;

}  // namespace sample_library
