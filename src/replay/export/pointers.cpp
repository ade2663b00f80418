#include "replay/export/pointers.hpp"

#include <algorithm>
#include <cstring>

namespace cudabpf::replay {

LiveBlocks::LiveBlocks(const Manifest& manifest, const Tape& tape, std::size_t step)
    : blocks_(manifest.blocks) {
  const bundle::Operation* until =
      step < tape.steps().size() ? tape.steps()[step].operation : nullptr;
  for (const bundle::Operation& operation : tape.operations()) {
    if (&operation == until) break;
    if (operation.action == Action::alloc) blocks_.push_back(*operation.memory);
    if (operation.action != Action::free) continue;
    std::uint64_t gone = operation.memory->address.value;
    std::erase_if(blocks_, [=](const bundle::Block& block) { return block.address.value == gone; });
  }
  std::sort(blocks_.begin(), blocks_.end(), [](const bundle::Block& a, const bundle::Block& b) {
    return a.address.value < b.address.value;
  });
}

std::optional<std::size_t> LiveBlocks::at(std::uint64_t address) const {
  auto behind = std::partition_point(
      blocks_.begin(), blocks_.end(),
      [=](const bundle::Block& block) { return block.address.value <= address; });
  if (behind == blocks_.begin()) return std::nullopt;
  const bundle::Block& block = *std::prev(behind);
  if (address - block.address.value >= block.size) return std::nullopt;
  return static_cast<std::size_t>(std::prev(behind) - blocks_.begin());
}

std::vector<FoundPointer> pointers_in(std::string_view bytes, const LiveBlocks& live,
                                      bool only_aligned) {
  constexpr std::size_t WORD = sizeof(std::uint64_t);
  std::vector<FoundPointer> found;
  for (std::size_t at = 0; at + WORD <= bytes.size(); at += only_aligned ? WORD : 1) {
    std::uint64_t to = 0;
    std::memcpy(&to, bytes.data() + at, WORD);
    if (auto block = live.at(to)) found.push_back({at, to, *block});
  }
  return found;
}

}  // namespace cudabpf::replay
