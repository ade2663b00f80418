// What can be compared by name. One table makes the rows of `diff`, its JSON, the conditions of
// --fail-if, their completion and the error for a wrong one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/diff/measures.hpp"
#include "analyze/diff/noise.hpp"

namespace cudabpf::analyze {

enum class Unit : std::uint8_t { count, time, bytes, share };  // time: ns; share: in millionths
std::string_view to_string(Unit unit);

// What must be complete in a trace for a measure to be known, and in both to compare it.
enum class Need : std::uint16_t {
  calls = 1 << 0,  // every call
  launches = 1 << 1,
  copies = 1 << 2,
  waits = 1 << 3,
  memory = 1 << 4,     // allocations and frees, and what they returned
  results = 1 << 5,    // what calls returned
  times = 1 << 6,      // when they returned
  names = 1 << 7,      // of kernels
  driver = 1 << 8,     // operations on the driver's devices
  processes = 1 << 9,  // their names, and how they ended
  gpu_errors = 1 << 10,
  the_end = 1 << 11,    // when it ended
  pending = 1 << 12,    // the GPU's pending work at any moment
  graphs = 1 << 13,     // what the launched graphs hold
  gpu_times = 1 << 14,  // how long GPU operations took
};
class Needs {
 public:
  constexpr Needs() = default;
  constexpr Needs(Need need) : bits_(static_cast<std::uint16_t>(need)) {}  // NOLINT: implicit
  constexpr Needs operator|(Needs other) const {
    Needs both;
    both.bits_ = static_cast<std::uint16_t>(bits_ | other.bits_);
    return both;
  }
  constexpr bool any_of(Needs other) const { return bits_ & other.bits_; }
  static constexpr Needs all() {
    Needs every;
    every.bits_ = 0xffff;
    return every;
  }

 private:
  std::uint16_t bits_ = 0;
};
constexpr Needs operator|(Need a, Need b) { return Needs(a) | b; }

// In the order in which a row of the table is read.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct Measure {
  enum class Place : std::uint8_t { totals, iterations, phases };  // the table that has its rows
  // The figure of a side's traces that counts: the usual one, or the most of what should never be.
  enum class Counts : std::uint8_t { median, most };
  using Whole = std::optional<std::uint64_t> (*)(const Measures&);
  using Parts = std::vector<PartFigure> (*)(const Measures&);

  std::string_view name = {};    // as --fail-if takes it
  std::string_view title = {};   // as the page has it
  std::string_view absent = {};  // what a trace may have none of; empty: every trace has it
  Unit unit = Unit::count;
  Place place = Place::totals;
  Needs needs = {};
  Counts counts = Counts::median;
  std::string_view unlike = {};      // it has a row only where it differs from this measure
  std::string_view estimates = {};   // it has a row only where this measure has none
  Whole whole = nullptr;             // null: it has parts alone
  std::string_view part_is = {};     // what may stand behind a colon: "direction"; empty: nothing
  std::string_view part_title = {};  // with {} for the part; empty: parts have no rows
  Parts parts = nullptr;
  bool without_is_zero = false;  // a part that only another trace has counts as 0
  // It has rows only where all traces have the whole; a trace without the whole has no parts.
  bool in_all = false;
  // Within a trace, where it is a median of many values.
  Median (*median)(const Measures&) = nullptr;
};

std::span<const Measure> all_measures();
const Measure* find_measure(std::string_view name);  // null: there is none
std::vector<std::string> measure_names();

// A measure, or a part of it.
struct MeasurePart {
  const Measure* measure = nullptr;
  std::string part;          // empty: the whole
  std::string name() const;  // "transfers:HtoD"
  bool operator==(const MeasurePart&) const = default;
};

}  // namespace cudabpf::analyze
