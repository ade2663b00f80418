// What the process that replays says of one kernel: for --export and --with. A part of its answers
// (messages.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/fields.hpp"
#include "replay/ranges.hpp"

namespace cudabpf::replay {

struct Addresses {
  bundle::Address begin;
  std::uint64_t size = 0;
  bool operator==(const Addresses&) const = default;
};
DESCRIBE(Addresses, begin, size)

inline std::vector<Addresses> addresses_of(const std::vector<Range>& ranges) {
  std::vector<Addresses> all;
  all.reserve(ranges.size());
  for (const Range& range : ranges) all.push_back({{range.begin}, range.size()});
  return all;
}
inline std::vector<Range> ranges_of(const std::vector<Addresses>& addresses) {
  std::vector<Range> all;
  all.reserve(addresses.size());
  for (const Addresses& one : addresses)
    all.push_back({one.begin.value, one.begin.value + one.size});
  return all;
}
inline std::uint64_t size_of(const std::vector<Addresses>& addresses) {
  return size_of(ranges_of(addresses));
}

// ----- Task::extract

// Which blocks come into the folder. One follows the other if it was not enough.
enum class MemoryTaken : std::uint8_t {
  pointers,  // that the parameters lead to, or that are written
  touching,  // and those that follow one of these without a gap: some allocators map in pieces
  all,       // that are live
};
inline constexpr std::array<std::string_view, 3> MEMORY_TAKEN = {"from pointers", "touching",
                                                                 "all"};
constexpr const auto& names_of(MemoryTaken) { return MEMORY_TAKEN; }

// A word of a launch's parameters that is an address in live memory.
struct Pointer {
  std::uint32_t offset = 0;  // in the parameters; a multiple of 8, unless they are packed
  bundle::Address to;
  Addresses block;
};
DESCRIBE(Pointer, offset, to, block)

// A launch that was taken into a folder of its own.
struct Extract {
  std::uint64_t step = 0;  // of the tape that it comes from
  std::vector<Pointer> pointers;
  std::uint64_t in = 0;       // bytes that are copied to the GPU before it
  std::uint64_t changed = 0;  // bytes in granules that it changed
  // What differs between runs of it with the same inputs, and is not compared.
  std::vector<Addresses> not_deterministic;
};
DESCRIBE(Extract, step, pointers, in, changed, not_deterministic)

struct Extracted {
  std::vector<Extract> launches;
  std::uint64_t blocks = 0, block_bytes = 0;  // of memory that the folder has
};
DESCRIBE(Extracted, launches, blocks, block_bytes)

// ----- Task::poison and Task::attempt: by occurrence of occurrences_in()

// Ranges that may hold anything before a launch: it writes them, and reads nothing of them.
struct Poisoned {
  std::vector<Addresses> ranges;
  std::uint64_t inputs = 0;  // bytes that it writes, but also reads: they are left alone
};
DESCRIBE(Poisoned, ranges, inputs)

// How far values are from those expected, if all bytes are of one type. Numbers of this kind are
// the bits of a double, since JSON has no infinity.
struct ValueErrors {
  std::uint64_t values = 0;                  // that are others
  std::uint64_t not_numbers = 0;             // of them: where only one of both is a number
  std::uint64_t absolute = 0, relative = 0;  // the largest
  std::uint64_t scaled = 0;  // the largest of: absolute / max(1, |expected|), for --tolerance
  bool operator==(const ValueErrors&) const = default;
};
DESCRIBE(ValueErrors, values, not_numbers, absolute, relative, scaled)

enum class ValueType : std::uint8_t { f32, f16, bf16, f64 };
inline constexpr std::array<std::string_view, 4> VALUE_TYPES = {"f32", "f16", "bf16", "f64"};
constexpr const auto& names_of(ValueType) { return VALUE_TYPES; }

// What an occurrence left, in all rounds together.
struct Attempted {
  std::uint64_t compared = 0, different = 0;  // bytes
  std::uint64_t not_written = 0;              // of the different: poison is still there
  std::uint32_t rounds = 0, rounds_different = 0;
  bundle::Address first;  // byte that is different
  // What changed of what it is given, but is not to write.
  std::vector<Addresses> touched;
  std::array<ValueErrors, VALUE_TYPES.size()> errors;
};
DESCRIBE(Attempted, compared, different, not_written, rounds, rounds_different, first, touched,
         errors)

}  // namespace cudabpf::replay
