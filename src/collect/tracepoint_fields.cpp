#include "collect/tracepoint_fields.hpp"

#include <cstdlib>
#include <string_view>

namespace cudabpf {

TracepointFields parse_tracepoint_fields(const std::string& text) {
  TracepointFields fields;
  constexpr std::string_view FIELD = "\tfield:", OFFSET = ";\toffset:";
  for (std::size_t at = 0; (at = text.find(FIELD, at)) != text.npos; at++) {
    std::size_t end = text.find(OFFSET, at);
    if (end == text.npos) break;
    std::size_t begin = text.rfind(' ', end) + 1;
    auto offset = std::strtoul(text.c_str() + end + OFFSET.size(), nullptr, 10);
    fields[text.substr(begin, end - begin)] = static_cast<std::uint16_t>(offset);
  }
  return fields;
}

}  // namespace cudabpf
