// USDT probes, from the notes that SystemTap's <sys/sdt.h> and those like it leave in a library.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "util/elf/elf.hpp"
#include "util/elf/notes.hpp"

namespace cudabpf::elf {

namespace {

constexpr std::uint64_t MAX_NOTE_SECTIONS = 64 << 10;
constexpr std::uint64_t MAX_NOTE_BYTES = 4 << 20;  // bytes, of all sections
constexpr std::size_t MAX_PROBES = 4096;           // of those that are wanted
constexpr std::uint32_t PROBE = 3;                 // the notes' type
constexpr std::uint64_t ALIGNMENT = 4;
constexpr std::string_view OWNER("stapsdt\0", 8);

// Takes a text and its NUL off the front; nothing if none ends there.
std::optional<std::string_view> take_text(std::string_view& from) {
  std::size_t end = from.find('\0');
  if (end == from.npos) return std::nullopt;
  std::string_view text = from.substr(0, end);
  from.remove_prefix(end + 1);
  return text;
}

}  // namespace

// No segment has these notes: only the section headers say where they are.
class ProbeNotes {
 public:
  ProbeNotes(const Image& image, std::string_view prefix) : image_(image), prefix_(prefix) {
    Elf64_Ehdr header{};
    if (!image_.read(0, header) || header.e_shentsize != sizeof(Elf64_Shdr)) return;
    std::uint64_t count = std::min<std::uint64_t>(header.e_shnum, MAX_NOTE_SECTIONS);
    Elf64_Shdr names{};
    image_.read(header.e_shoff + header.e_shstrndx * sizeof names, names);
    auto each = [&](auto&& visit) {
      Elf64_Shdr section{};
      for (std::uint64_t i = 0; i < count; i++)
        if (image_.read(header.e_shoff + i * sizeof section, section)) visit(section);
    };
    each([&](const Elf64_Shdr& section) {
      if (section.sh_type == SHT_PROGBITS && has_name(section, names, ".stapsdt.base"))
        base_ = section.sh_addr;
    });
    std::uint64_t room = MAX_NOTE_BYTES;  // many sections may be the same bytes
    each([&](const Elf64_Shdr& section) {
      if (section.sh_type != SHT_NOTE || section.sh_size > room) return;
      room -= section.sh_size;
      read(image_.read_text(section.sh_offset, section.sh_size));
    });
  }

  std::vector<StaticProbe> take() && { return std::move(probes_); }
  std::uint64_t left_out() const { return left_out_; }

 private:
  // What a note says first.
  struct Addresses {
    std::uint64_t place, base, semaphore;
  };

  bool has_name(const Elf64_Shdr& section, const Elf64_Shdr& names, std::string_view name) const {
    std::uint64_t at = names.sh_offset + section.sh_name;
    return section.sh_name < names.sh_size &&
           image_.read_text(at, name.size() + 1) == std::string(name) + '\0';
  }

  void read(std::string_view notes) {
    while (auto note = take_note(notes, ALIGNMENT))
      if (note->type == PROBE && note->owner == OWNER) add(note->content);
  }

  void add(std::string_view content) {
    Addresses at{};
    if (content.size() < sizeof at) return;
    std::memcpy(&at, content.data(), sizeof at);
    content.remove_prefix(sizeof at);
    auto provider = take_text(content), name = take_text(content), arguments = take_text(content);
    if (!provider || !name || !arguments) return;
    StaticProbe probe{.name = std::string(*provider) + ':' + std::string(*name),
                      .arguments = std::string(*arguments)};
    if (!probe.name.starts_with(prefix_)) return;
    // Whoever has moved the code has moved the base with it, but has left the notes as they were.
    if (base_ && at.base) at.place += *base_ - at.base;
    const Image::Segment* code = image_.segment_of(at.place);
    const Image::Segment* data = image_.segment_of(at.semaphore);
    bool sound = code && code->executable && (data || !at.semaphore);
    if (!sound || probes_.size() == MAX_PROBES) {
      left_out_++;
      return;
    }
    probe.offset = code->offset + (at.place - code->address);
    if (at.semaphore) probe.semaphore = data->offset + (at.semaphore - data->address);
    probes_.push_back(std::move(probe));
  }

  const Image& image_;
  std::string_view prefix_;
  std::optional<std::uint64_t> base_;
  std::vector<StaticProbe> probes_;
  std::uint64_t left_out_ = 0;
};

std::vector<StaticProbe> Image::static_probes(std::string_view prefix,
                                              std::uint64_t* left_out) const {
  ProbeNotes notes(*this, prefix);
  if (left_out) *left_out += notes.left_out();
  return std::move(notes).take();
}

}  // namespace cudabpf::elf
