// Curves and axes made of characters, and where the marks of an axis go.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "util/page/time_scale.hpp"
#include "util/text/moments.hpp"

namespace cudabpf {

// One character per value, taller the closer it is to `most`: "▁▂▃▄▅▆▇█". Only 0 is blank.
std::string spark(std::span<const std::uint64_t> values, std::uint64_t most);
// The same, `rows` lines high; the topmost line first.
std::vector<std::string> tall_spark(std::span<const std::uint64_t> values, std::uint64_t most,
                                    std::size_t rows);

// At most `at_most` round numbers in [from, to]: of time (1, 2 and 5 times a power of ten) and of
// bytes (powers of two).
std::vector<std::uint64_t> time_marks(std::uint64_t from, std::uint64_t to, std::size_t at_most);
std::vector<std::uint64_t> byte_marks(std::uint64_t most, std::size_t at_most);

// "200 ms", "1.5 s", "0": like human_time(), but without superfluous digits. `step` says how fine
// it must be.
std::string mark_time(std::uint64_t ns, std::uint64_t step);

// The marks of each piece of a scale, at most `at_most` in all, or one each. Times of day are
// marked where those are round.
struct ScaleMarks {
  std::uint64_t step = 0;            // from one to the next
  std::vector<std::uint64_t> times;  // in order, since the trace began
};
ScaleMarks scale_marks(const TimeScale& scale, std::size_t at_most, const Moments& moments = {});
// "9.95 s folded": what the fold after this piece leaves out.
std::string fold_label(const TimeScale& scale, std::size_t piece);

// The axis below a chart: a line with marks, and their times below. It breaks where time is folded.
struct TextAxis {
  std::string line, labels;
};
TextAxis time_axis(const TimeScale& scale, const Moments& moments = {});
// What stands in a fold's columns in each line of the chart.
inline constexpr std::string_view FOLD = "╱╱";
inline constexpr std::size_t FOLD_WIDTH = 2;

}  // namespace cudabpf
