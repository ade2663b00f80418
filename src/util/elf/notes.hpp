// The notes of a segment or section. The file may be hostile: a note that ends beyond them is none.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace cudabpf::elf {

struct Note {
  std::uint32_t type = 0;
  std::string_view owner, content;
};

// Takes the first one off the front.
inline std::optional<Note> take_note(std::string_view& notes, std::uint64_t alignment) {
  auto align = [alignment](std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; };
  Elf64_Nhdr head{};
  if (notes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, notes.data(), sizeof head);
  std::uint64_t content = align(sizeof head + std::uint64_t{head.n_namesz});
  std::uint64_t end = content + head.n_descsz;
  if (end > notes.size()) return std::nullopt;
  Note note{head.n_type, notes.substr(sizeof head, head.n_namesz),
            notes.substr(content, head.n_descsz)};
  notes.remove_prefix(std::min<std::uint64_t>(align(end), notes.size()));
  return note;
}

}  // namespace cudabpf::elf
