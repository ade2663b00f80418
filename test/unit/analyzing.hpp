// A small trace, written by hand, for an analysis to be shown.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "analyze/analysis.hpp"
#include "analyze/line_parser.hpp"

namespace cudabpf::analyze {

// Reads the lines of `text`, each JSON without the header, and gives them to `each`.
template <typename Each>
void each_line(LineParser& parser, const std::string& text, Each&& each) {
  Line line;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string one = text.substr(at, end - at) + std::string(LineParser::PADDING, '\0');
    at = end + 1;
    CAPTURE(one);
    line.number = ++number;
    REQUIRE(parser.parse({one.data(), one.size() - LineParser::PADDING}, line));
    each(line);
  }
}

}  // namespace cudabpf::analyze
