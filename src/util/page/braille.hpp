// Curves of dots: two points and four steps in each character.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cudabpf {

// Lines of `columns` characters, the topmost first. Each value takes half a column, and fills it up
// to its height; the last ones are at the right. Everything but 0 has a dot; what is not known is
// blank. Without `utf8`, an ASCII character shows the higher one of two values.
std::vector<std::string> braille_graph(std::span<const std::optional<double>> values, double most,
                                       std::size_t rows, std::size_t columns, bool utf8);

// "[||||||    ]", or with blocks: this many columns, of which a part from 0 to 1 is filled.
std::string bar(double part, std::size_t columns, bool utf8);

}  // namespace cudabpf
