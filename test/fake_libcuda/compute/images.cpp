// What images hold: cubins, fat binaries, wrappers of these, and PTX.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string_view>

#include "kernels.hpp"

namespace fake {
namespace {

constexpr uint32_t kFatBinary = 0xba55ed50, kWrapper = 0x466243b1;
constexpr std::string_view kComment = "//fake ", kEntry = ".entry ";

template <typename T>
T at(const void* base, uint64_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

std::vector<unsigned char> bytes_of(const std::string& hex) {
  std::vector<unsigned char> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

void read_line(ImageContent& content, const std::string& line) {
  std::istringstream words(line);
  std::string what, name, hex;  // of a kernel: what it does
  words >> what >> name >> hex;
  if (what == "kernel") content.kernels.push_back({name, hex.empty() ? name : hex});
  if (what == "variable") content.variables.push_back({name, bytes_of(hex)});
}

std::optional<ImageContent> in_cubin(const void* image) {
  const auto header = at<Elf64_Ehdr>(image, 0);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(image, header.e_shoff + i * header.e_shentsize);
    if (section.sh_type != kImageSection) continue;
    std::istringstream lines(
        std::string(static_cast<const char*>(image) + section.sh_offset, section.sh_size));
    ImageContent content;
    for (std::string line; std::getline(lines, line);) read_line(content, line);
    return content;
  }
  return std::nullopt;
}

std::optional<ImageContent> in_ptx(const char* text) {
  std::istringstream lines(text);
  ImageContent content;
  bool any = false;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t entry = line.find(kEntry); entry != line.npos) {
      any = true;
      const size_t name = entry + kEntry.size();
      const std::string kernel = line.substr(name, line.find('(', name) - name);
      content.kernels.push_back({kernel, kernel});
    }
    if (!line.starts_with(kComment)) continue;
    any = true;
    read_line(content, line.substr(kComment.size()));
  }
  return any ? std::optional(content) : std::nullopt;
}

// Each entry has a header that begins with its kind and flags, its own size, and its payload's.
std::optional<ImageContent> in_fat_binary(const void* image) {
  const auto header = at<uint16_t>(image, 6);
  const auto size = at<uint64_t>(image, 8);
  for (uint64_t entry = header; entry < header + size;) {
    const auto entry_header = at<uint32_t>(image, entry + 4);
    if (const auto found = content_of(static_cast<const char*>(image) + entry + entry_header))
      return found;
    entry += entry_header + at<uint64_t>(image, entry + 8);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ImageContent> content_of(const void* image) {
  if (!image) return std::nullopt;
  const auto magic = at<uint32_t>(image, 0);
  if (magic == kFatBinary) return in_fat_binary(image);
  if (magic == kWrapper) return content_of(at<const void*>(image, 8));
  if (!memcmp(image, ELFMAG, SELFMAG)) return in_cubin(image);
  if (!memcmp(image, ".ver", 4) || !memcmp(image, "//", 2))
    return in_ptx(static_cast<const char*>(image));
  return std::nullopt;
}

}  // namespace fake
