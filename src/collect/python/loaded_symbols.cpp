#include "collect/python/loaded_symbols.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace cudabpf {

namespace {

constexpr std::uint64_t MAX_HEADERS = 64, MAX_DYNAMIC = 512, MAX_CHAIN = 4096, MAX_NAME = 64;
constexpr std::uint64_t PAGE = 4096;

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

struct HashHeader {
  std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
};

}  // namespace

std::optional<LoadedSymbols> LoadedSymbols::at(const ProgramMemory& memory, std::uint64_t start) {
  auto header = memory.value<Elf64_Ehdr>(start);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
      header->e_phoff > PAGE)
    return std::nullopt;
  LoadedSymbols found(memory);
  std::optional<std::uint64_t> dynamic;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header->e_phnum, MAX_HEADERS); i++) {
    auto part = memory.value<Elf64_Phdr>(start + header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part) return std::nullopt;
    if (part->p_type == PT_LOAD && part->p_offset == 0) found.bias_ = start - part->p_vaddr;
    if (part->p_type == PT_DYNAMIC) dynamic = part->p_vaddr;
  }
  if (!dynamic) return std::nullopt;
  for (std::uint64_t i = 0; i < MAX_DYNAMIC; i++) {
    auto entry = memory.value<Elf64_Dyn>(found.bias_ + *dynamic + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    // Some linkers have added the bias, others have not.
    std::uint64_t address = entry->d_un.d_ptr;
    if (address < start) address += found.bias_;
    if (entry->d_tag == DT_SYMTAB) found.symbols_ = address;
    if (entry->d_tag == DT_STRTAB) found.strings_ = address;
    if (entry->d_tag == DT_GNU_HASH) found.hashes_ = address;
  }
  if (!found.symbols_ || !found.strings_ || !found.hashes_) return std::nullopt;
  return found;
}

bool LoadedSymbols::is_named(std::uint64_t symbol, std::string_view name) const {
  auto at = memory_.value<std::uint32_t>(symbol);  // Elf64_Sym::st_name
  std::array<char, MAX_NAME> its{};
  if (!at || name.size() >= its.size()) return false;
  auto with_end = std::span(its).first(name.size() + 1);
  return memory_.read(strings_ + *at, std::as_writable_bytes(with_end)) &&
         its[name.size()] == '\0' && std::string_view(its.data(), name.size()) == name;
}

std::optional<std::uint64_t> LoadedSymbols::address_of(std::string_view name) const {
  auto header = memory_.value<HashHeader>(hashes_);
  if (!header || !header->buckets) return std::nullopt;
  std::uint32_t hash = gnu_hash(name);
  std::uint64_t buckets =
      hashes_ + sizeof(HashHeader) + header->bloom_words * sizeof(std::uint64_t);
  std::uint64_t chains = buckets + header->buckets * sizeof(std::uint32_t);
  auto first = memory_.value<std::uint32_t>(buckets + hash % header->buckets * sizeof(hash));
  if (!first || *first < header->first_symbol) return std::nullopt;
  for (std::uint64_t i = *first; i < *first + MAX_CHAIN; i++) {
    auto its = memory_.value<std::uint32_t>(chains + (i - header->first_symbol) * sizeof(hash));
    if (!its) return std::nullopt;
    std::uint64_t at = symbols_ + i * sizeof(Elf64_Sym);
    if ((*its | 1) == (hash | 1) && is_named(at, name)) {
      auto symbol = memory_.value<Elf64_Sym>(at);
      if (symbol && symbol->st_shndx != SHN_UNDEF) return bias_ + symbol->st_value;
    }
    if (*its & 1) break;
  }
  return std::nullopt;
}

}  // namespace cudabpf
