#include "analyze/memory/memory_part.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

std::string biggest_text(const std::vector<MemoryPart>& parts, const Names& names) {
  constexpr std::size_t BIGGEST = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), BIGGEST); i++) {
    const MemoryPart& part = parts[i];
    std::string name = part.name ? std::string(names.text(part.name)) : "unknown code";
    if (part.pid) name = fmt::format("process {} {}", part.pid, name);
    text += fmt::format("{} {} by {}", i ? "," : ":", human_bytes(part.bytes), name);
  }
  return text;
}

}  // namespace cudabpf::analyze
