// What a function's first instructions refer to that is not theirs, so that it can be put there
// when they are run. Offsets are counted from the function's entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

struct Compared {  // a number in memory, with a constant
  std::int64_t at = 0;
  std::size_t size = 0;
  std::uint64_t equal = 0, unequal = 0;  // values for which the zero flag is set, and is not
};

struct References {
  std::vector<std::int64_t> targets;  // of branches
  std::optional<std::int64_t> slot;   // memory that holds where it jumps to
  std::optional<Compared> compared;
};

References references_of(std::span<const std::byte> code);
