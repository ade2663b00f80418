#include "util/elf/elf.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "util/elf/notes.hpp"

namespace cudabpf::elf {

namespace {

// No linker makes a library with more. Without limits, a hostile one would slow down every look-up.
constexpr std::size_t MAX_SEGMENTS = 256;
constexpr std::uint64_t MAX_NOTES = 64 << 10;
constexpr std::uint64_t MAX_DYNAMIC = 4096;
constexpr std::uint64_t MAX_SECTIONS = 64 << 10;
constexpr std::uint64_t MAX_SYMBOLS = 256 << 10;
constexpr std::uint64_t MAX_STRINGS = 32 << 20;
constexpr std::uint64_t MAX_NAMES = 16 << 20;  // bytes, of all functions together

constexpr std::string_view GNU("GNU\0", 4);
constexpr std::string_view READS = "; only 64-bit little-endian ELF files can be traced";

// What a file that is not ELF seems to be, judging by its start.
std::string_view guess_kind(std::string_view text) {
  struct Magic {
    std::string_view start, kind;
  };
  static constexpr std::array MAGICS = {
      Magic{"!<arch>\n", "a static archive (.a)"},
      Magic{"!<thin>\n", "a static archive (.a)"},
      Magic{"#!", "a script"},
      Magic{"MZ", "a Windows file"},
      Magic{"\xcf\xfa\xed\xfe", "a macOS file"},
      Magic{"\xca\xfe\xba\xbe", "a macOS file"},
      Magic{"\x1f\x8b", "a compressed file (gzip)"},
      Magic{"\x28\xb5\x2f\xfd", "a compressed file (zstd)"},
      Magic{"\xfd"
            "7zXZ",
            "a compressed file (xz)"},
      Magic{"PK\x03\x04", "a zip archive"},
  };
  if (text.empty()) return "an empty file";
  for (const Magic& magic : MAGICS) {
    if (text.starts_with(magic.start)) return magic.kind;
  }
  bool printable = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 || c == '\n' || c == '\t' || c == '\r';
  });
  if (!printable) return {};
  for (std::string_view word : {"GROUP", "INPUT", "OUTPUT_FORMAT"}) {
    if (text.find(word) != text.npos) return "a linker script";
  }
  return "a text file";
}

std::string_view guess_machine(std::uint16_t machine) {
  switch (machine) {
    case EM_PPC64:
      return "PowerPC64";
    case EM_RISCV:
      return "RISC-V";
    case EM_S390:
      return "S/390";
    case EM_MIPS:
      return "MIPS";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "ARM";
    case EM_CUDA:
      return "a GPU (it is a cubin)";
    default:
      return {};
  }
}

}  // namespace

bool Image::contains(std::uint64_t offset, std::uint64_t size) const {
  return offset <= source_->size() && size <= source_->size() - offset;
}

std::string Image::read_text(std::uint64_t offset, std::uint64_t size) const {
  if (!contains(offset, size)) return {};
  std::string text(size, '\0');
  return source_->read(offset, std::as_writable_bytes(std::span(text))) ? text : std::string{};
}

// Empty if no string there ends within the table.
std::string_view Image::string_at(std::uint64_t index) const {
  if (index >= strings_.size()) return {};
  std::string_view rest = std::string_view(strings_).substr(index, MAX_NAME + 1);
  std::size_t end = rest.find('\0');
  return end == rest.npos ? std::string_view{} : rest.substr(0, end);
}

const Image::Segment* Image::segment_of(std::uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (address >= segment.address && address - segment.address < segment.size) return &segment;
  }
  return nullptr;
}

// Fills an Image from the file's headers. Functions that return text say why they failed, or return
// an empty text.
class Parser {
 public:
  Parser(Image& image, const Elf64_Ehdr& header) : image_(image), header_(header) {}

  std::string run() {
    if (std::string problem = read_segments(); !problem.empty()) return problem;
    read_dynamic();
    // Section headers give the number of symbols directly, but strippers and packers remove them or
    // leave them dangling. What the loader uses is always there.
    std::string sections = find_symbols_by_sections();
    if (!sections.empty() && !find_symbols_by_dynamic()) {
      return sections + ", and its dynamic section names no symbols either";
    }
    if (symbols_.size / sizeof(Elf64_Sym) > MAX_SYMBOLS || strings_.size > MAX_STRINGS)
      return "it has more symbols than are read";
    image_.symbols_ = image_.read_text(symbols_.offset, symbols_.size);
    image_.strings_ = image_.read_text(strings_.offset, strings_.size);
    if (image_.symbols_.size() != symbols_.size || image_.strings_.size() != strings_.size)
      return "truncated: it was cut short while it was read";
    if (tags_.soname) image_.soname_ = image_.string_at(*tags_.soname);
    return {};
  }

 private:
  struct DynamicTags {
    std::optional<std::uint64_t> symbols, strings, strings_size, hash, gnu_hash, soname;
  };

  std::string read_segments() {
    if (header_.e_phentsize != sizeof(Elf64_Phdr) ||
        !image_.contains(header_.e_phoff, std::uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr))) {
      return "truncated: program headers end beyond the file";
    }
    if (header_.e_phnum > MAX_SEGMENTS) return "corrupt: too many segments";
    for (std::uint64_t i = 0; i < header_.e_phnum; i++) {
      Elf64_Phdr segment{};
      image_.read(header_.e_phoff + i * sizeof segment, segment);
      bool used = segment.p_type == PT_LOAD || segment.p_type == PT_DYNAMIC;
      if (used && !image_.contains(segment.p_offset, segment.p_filesz)) {
        return "truncated: its segments end beyond the file";
      }
      if (segment.p_type == PT_LOAD) {
        image_.segments_.push_back(
            {segment.p_offset, segment.p_vaddr, segment.p_filesz, (segment.p_flags & PF_X) != 0});
      } else if (segment.p_type == PT_DYNAMIC) {
        dynamic_ = {segment.p_offset, segment.p_filesz};
      } else if (segment.p_type == PT_NOTE && image_.build_id_.empty() &&
                 image_.contains(segment.p_offset, segment.p_filesz)) {
        read_build_id(image_.read_text(segment.p_offset, std::min(segment.p_filesz, MAX_NOTES)),
                      segment.p_align == 8 ? 8 : 4);
      }
    }
    return {};
  }

  void read_build_id(std::string_view notes, std::uint64_t alignment) {
    while (auto note = take_note(notes, alignment)) {
      if (note->type != NT_GNU_BUILD_ID || note->owner != GNU ||
          note->content.size() > MAX_BUILD_ID)
        continue;
      for (char byte : note->content)
        image_.build_id_ += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      return;
    }
  }

  void read_dynamic() {
    for (std::uint64_t i = 0; i < std::min(dynamic_.size / sizeof(Elf64_Dyn), MAX_DYNAMIC); i++) {
      Elf64_Dyn entry{};
      if (!image_.read(dynamic_.offset + i * sizeof entry, entry)) return;
      switch (entry.d_tag) {
        case DT_NULL:
          return;
        case DT_SYMTAB:
          tags_.symbols = entry.d_un.d_ptr;
          break;
        case DT_STRTAB:
          tags_.strings = entry.d_un.d_ptr;
          break;
        case DT_STRSZ:
          tags_.strings_size = entry.d_un.d_val;
          break;
        case DT_HASH:
          tags_.hash = entry.d_un.d_ptr;
          break;
        case DT_GNU_HASH:
          tags_.gnu_hash = entry.d_un.d_ptr;
          break;
        case DT_SONAME:
          tags_.soname = entry.d_un.d_val;
          break;
        default:
          break;
      }
    }
  }

  std::optional<std::uint64_t> offset_of(std::optional<std::uint64_t> address) const {
    const Image::Segment* segment = address ? image_.segment_of(*address) : nullptr;
    if (!segment) return {};
    return segment->offset + (*address - segment->address);
  }

  bool read_section(std::uint64_t index, std::uint64_t count, Elf64_Shdr& section) const {
    return index < count && image_.read(header_.e_shoff + index * sizeof section, section);
  }

  std::string find_symbols_by_sections() {
    if (header_.e_shoff == 0) return "stripped of its section headers";
    Elf64_Shdr section{};
    // The header's count has only 16 bits; beyond that, the first section's size is the count.
    std::uint64_t count = header_.e_shnum;
    if (count == 0 && image_.read(header_.e_shoff, section)) count = section.sh_size;
    if (header_.e_shentsize != sizeof section || count > MAX_SECTIONS ||
        !image_.contains(header_.e_shoff, count * sizeof section)) {
      return "truncated: section headers end beyond the file";
    }
    for (std::uint64_t i = 0; i < count; i++) {
      if (!read_section(i, count, section) || section.sh_type != SHT_DYNSYM) continue;
      Elf64_Shdr strings{};
      bool sound = section.sh_entsize == sizeof(Elf64_Sym) &&
                   image_.contains(section.sh_offset, section.sh_size) &&
                   read_section(section.sh_link, count, strings) && strings.sh_type == SHT_STRTAB &&
                   image_.contains(strings.sh_offset, strings.sh_size);
      // If the loader looks elsewhere, it is right and the section headers are wrong.
      std::optional<std::uint64_t> loaded = offset_of(tags_.symbols);
      if (!sound || (loaded && *loaded != section.sh_offset)) return "corrupt section headers";
      symbols_ = {section.sh_offset, section.sh_size / sizeof(Elf64_Sym) * sizeof(Elf64_Sym)};
      strings_ = {strings.sh_offset, strings.sh_size};
      return {};
    }
    return "without a dynamic symbol table (a static program, or a separate debug file)";
  }

  bool find_symbols_by_dynamic() {
    std::optional<std::uint64_t> symbols = offset_of(tags_.symbols);
    std::optional<std::uint64_t> strings = offset_of(tags_.strings);
    if (!symbols || !strings) return false;
    std::uint64_t count = tags_.gnu_hash ? count_by_gnu_hash() : count_by_hash();
    std::uint64_t size = count * sizeof(Elf64_Sym);
    std::uint64_t strings_size = tags_.strings_size.value_or(0);
    if (count == 0 || !image_.contains(*symbols, size)) return false;
    if (!image_.contains(*strings, strings_size)) return false;
    symbols_ = {*symbols, size};
    strings_ = {*strings, strings_size};
    return true;
  }

  // Both kinds of hash table index the symbols, so either gives their number; 0 if it cannot.
  std::uint64_t count_by_hash() const {
    struct {
      std::uint32_t buckets, chains;
    } table{};
    std::optional<std::uint64_t> at = offset_of(tags_.hash);
    return at && image_.read(*at, table) ? table.chains : 0;
  }

  std::uint64_t count_by_gnu_hash() const {
    struct {
      std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
    } table{};
    std::optional<std::uint64_t> at = offset_of(tags_.gnu_hash);
    if (!at || !image_.read(*at, table)) return 0;
    std::uint64_t buckets =
        *at + sizeof table + std::uint64_t{table.bloom_words} * sizeof(std::uint64_t);
    std::uint64_t chains = buckets + std::uint64_t{table.buckets} * sizeof(std::uint32_t);
    if (table.buckets > MAX_SYMBOLS || !image_.contains(buckets, chains - buckets)) return 0;
    std::uint32_t last = 0;
    for (std::uint64_t bucket = buckets; bucket < chains; bucket += sizeof last) {
      std::uint32_t symbol = 0;
      if (!image_.read(bucket, symbol)) return 0;
      last = std::max(last, symbol);
    }
    if (last < table.first_symbol) return table.first_symbol;  // it exports nothing
    if (last > MAX_SYMBOLS) return last;                       // the caller refuses it
    // A bucket's symbols are consecutive; the last one's hash has its lowest bit set.
    for (std::uint64_t symbol = last;; symbol++) {
      if (symbol > MAX_SYMBOLS) return symbol;
      std::uint32_t hash = 0;
      if (!image_.read(chains + (symbol - table.first_symbol) * sizeof hash, hash)) return 0;
      if (hash & 1) return symbol + 1;
    }
  }

  Image& image_;
  const Elf64_Ehdr& header_;
  Image::Extent dynamic_, symbols_, strings_;
  DynamicTags tags_;
};

Result<Image> Image::parse(std::shared_ptr<const Source> source) {
  auto refuse = [](std::string what, std::string hint = {}) {
    return Error{std::move(what), std::move(hint)};
  };
  Image image(std::move(source));
  constexpr std::uint64_t START = 4096;  // enough for a guess
  std::string start = image.read_text(0, std::min(image.source_->size(), START));
  if (!start.starts_with(ELFMAG)) {
    std::string_view kind = guess_kind(start);
    return refuse(kind.empty() ? "not an ELF file" : fmt::format("{}, not a library", kind),
                  kind == "a linker script" ? "name the library that the script names" : "");
  }
  if (start.size() < EI_NIDENT) return refuse("truncated: the ELF header is incomplete");
  auto ident = [&start](std::size_t index) { return static_cast<unsigned char>(start[index]); };
  if (ident(EI_CLASS) == ELFCLASS32) return refuse(fmt::format("a 32-bit library{}", READS));
  if (ident(EI_CLASS) != ELFCLASS64)
    return refuse("corrupt: its ELF class is neither 32 nor 64-bit");
  if (ident(EI_DATA) != ELFDATA2LSB) return refuse(fmt::format("a big-endian file{}", READS));

  Elf64_Ehdr header{};
  if (!image.read(0, header)) return refuse("truncated: the ELF header is incomplete");
  switch (header.e_machine) {
    case EM_X86_64:
      image.machine_ = Machine::x86_64;
      break;
    case EM_AARCH64:
      image.machine_ = Machine::aarch64;
      break;
    default: {
      std::string_view name = guess_machine(header.e_machine);
      return refuse(fmt::format("made for {}, not for x86-64 or AArch64",
                                name.empty() ? fmt::format("machine {}", header.e_machine) : name));
    }
  }
  switch (header.e_type) {
    case ET_DYN:
    case ET_EXEC:
      break;
    case ET_REL:
      return refuse("an object file (.o), not a library");
    case ET_CORE:
      return refuse("a core dump, not a library");
    default:
      return refuse("neither a library nor a program");
  }
  if (std::string problem = Parser(image, header).run(); !problem.empty()) return refuse(problem);
  return image;
}

Result<Image> Image::open(const Fd& fd) {
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return errno_error("reading it");
  if (!S_ISREG(status.st_mode)) return Error{"not a regular file"};
  return parse(bytes_of_file(fd.get(), static_cast<std::uint64_t>(status.st_size)));
}

std::vector<Function> Image::functions(std::string_view prefix, std::uint64_t* left_out) const {
  std::vector<Function> found;
  std::uint64_t names_left = std::min(source_->size(), MAX_NAMES);
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols_.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol{};
    std::memcpy(&symbol, symbols_.data() + at, sizeof symbol);
    unsigned type = ELF64_ST_TYPE(symbol.st_info), binding = ELF64_ST_BIND(symbol.st_info);
    unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
    if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
    if (binding != STB_GLOBAL && binding != STB_WEAK) continue;
    if (visibility != STV_DEFAULT && visibility != STV_PROTECTED) continue;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
    std::string_view name = string_at(symbol.st_name);
    name = name.substr(0, name.find('@'));
    if (name.empty() || !name.starts_with(prefix)) continue;
    const Segment* segment = segment_of(symbol.st_value);
    if (!segment || !segment->executable) continue;
    if (name.size() > names_left) {
      names_left = 0;
      if (left_out) ++*left_out;
      continue;
    }
    names_left -= name.size();
    found.push_back({.name = std::string(name),
                     .address = symbol.st_value,
                     .offset = segment->offset + (symbol.st_value - segment->address),
                     .size = symbol.st_size});
  }
  return found;
}

std::vector<std::byte> Image::code(const Function& function, std::size_t count) const {
  const Segment* segment = segment_of(function.address);
  if (!segment) return {};
  std::uint64_t at = function.address - segment->address;
  std::vector<std::byte> code(std::min<std::uint64_t>(count, segment->size - at));
  if (!source_->read(segment->offset + at, code)) return {};
  return code;
}

}  // namespace cudabpf::elf
