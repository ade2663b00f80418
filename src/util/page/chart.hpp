// Curves and axes made of characters, and where the marks of an axis go.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// The axis below a chart that is `width` characters wide: a line with marks, and their times below.
// Times of day are marked where those are round.
struct TextAxis {
  std::string line, labels;
};
TextAxis time_axis(std::uint64_t from, std::uint64_t to, std::size_t width,
                   const Moments& moments = {});

}  // namespace cudabpf
