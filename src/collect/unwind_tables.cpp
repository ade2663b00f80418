#include "collect/unwind_tables.hpp"

#include <elf.h>

#include <cstring>
#include <span>

namespace cudabpf {

namespace {

constexpr std::size_t MAX_PARTS = 64;
constexpr std::uint64_t MAX_BYTES = 64 << 20;  // libcuda's have 20 MB

template <typename T>
bool read_as(const elf::Source& source, std::uint64_t offset, T& to) {
  return source.read(offset, std::as_writable_bytes(std::span(&to, 1)));
}

}  // namespace

std::optional<UnwindTables> UnwindTables::read(const elf::Source& source) {
  Elf64_Ehdr head{};
  if (!read_as(source, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64 ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > MAX_PARTS)
    return std::nullopt;
  UnwindTables tables;
  std::vector<Elf64_Phdr> parts(head.e_phnum);
  for (std::size_t i = 0; i < parts.size(); i++) {
    if (!read_as(source, head.e_phoff + i * sizeof(Elf64_Phdr), parts[i])) return std::nullopt;
    const Elf64_Phdr& part = parts[i];
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X))
      tables.code_.push_back({part.p_offset, part.p_vaddr, part.p_filesz});
    if (part.p_type == PT_GNU_EH_FRAME) tables.header_ = part.p_vaddr;
  }
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type != PT_LOAD || tables.header_ - part.p_vaddr >= part.p_filesz) continue;
    if (part.p_filesz > MAX_BYTES || part.p_filesz > source.size()) return std::nullopt;
    tables.bytes_.resize(part.p_filesz);
    tables.address_ = part.p_vaddr;
    if (source.read(part.p_offset, tables.bytes_)) return tables;
  }
  return std::nullopt;
}

bool UnwindTables::step(std::uint64_t offset, const unwind::cu_memory& stack,
                        unwind::cu_frame& frame) const {
  unwind::cu_memory tables{reinterpret_cast<const std::uint8_t*>(bytes_.data()), address_,
                           bytes_.size()};
  for (const Segment& code : code_) {
    if (offset - code.offset >= code.size) continue;
    unwind::cu_frame here = frame;
    here.ip = offset - code.offset + code.address + 1;  // a frame stands behind its call
    if (!unwind::cu_step(&tables, header_, &stack, &here)) return false;
    frame = here;
    return true;
  }
  return false;
}

}  // namespace cudabpf
