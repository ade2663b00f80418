#include "util/text/label_value.hpp"

#include "util/text/printable.hpp"

namespace cudabpf {

std::string label_value(std::string_view text) {
  constexpr std::string_view REPLACEMENT = "\xef\xbf\xbd";
  std::string value;
  while (!text.empty()) {
    std::size_t size = first_character(text).size;
    std::string_view next = size ? text.substr(0, size) : REPLACEMENT;
    if (value.size() + next.size() > MAX_LABEL_BYTES) break;
    value += next;
    text.remove_prefix(size ? size : 1);
  }
  return value;
}

}  // namespace cudabpf
