// A tape of one kernel alone, as --export writes it: launches that can be run in any order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "replay/ranges.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

// Bytes that are so near are poisoned together, or not at all.
inline constexpr std::uint64_t NEAR_BY = 64 << 10;

struct Occurrence {
  struct Part {
    Range range;
    bundle::Extent bytes;
  };
  std::size_t step = 0;   // the launch
  std::vector<Part> in;   // what is copied to the GPU before it
  std::vector<Part> out;  // what is copied to the host after it, with what is expected there
};

// Merged.
std::vector<Range> ranges_of(const std::vector<Occurrence::Part>& parts);

// Nothing: the tape has something else, or does not copy the same ranges before each launch, with
// all that any launch writes among them.
std::optional<std::vector<Occurrence>> occurrences_in(const Tape& tape, const Manifest& manifest);

// The one kernel of the tape whose name is like the pattern (whole, short or mangled; empty: any).
// An error lists them, if there are several.
Result<std::string> kernel_like(const std::string& pattern, const Tape& tape,
                                const Manifest& manifest);
bool is_named(const std::string& pattern, const std::string& mangled);

}  // namespace cudabpf::replay
