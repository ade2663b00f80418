// The kinds of memory that CUDA allocates, as the function table and the traces spell them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cudabpf {

enum class MemoryKind : std::uint8_t { device, async, managed, host, vmm };
constexpr std::size_t MEMORY_KINDS = 5;
constexpr std::array<std::string_view, MEMORY_KINDS> MEMORY_KIND_NAMES = {"device", "async",
                                                                          "managed", "host", "vmm"};

constexpr std::string_view to_string(MemoryKind kind) {
  return MEMORY_KIND_NAMES[static_cast<std::size_t>(kind)];
}

constexpr std::optional<MemoryKind> memory_kind(std::string_view name) {
  const auto* at = std::find(MEMORY_KIND_NAMES.begin(), MEMORY_KIND_NAMES.end(), name);
  if (at == MEMORY_KIND_NAMES.end()) return std::nullopt;
  return static_cast<MemoryKind>(at - MEMORY_KIND_NAMES.begin());
}

}  // namespace cudabpf
