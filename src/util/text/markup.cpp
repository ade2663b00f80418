#include "util/text/markup.hpp"

namespace cudabpf {

std::string as_markup(std::string_view text) {
  std::string markup;
  for (char c : text) {
    if (c == '&')
      markup += "&amp;";
    else if (c == '<')
      markup += "&lt;";
    else if (c == '>')
      markup += "&gt;";
    else if (c == '"')
      markup += "&quot;";
    else
      markup += c;
  }
  return markup;
}

}  // namespace cudabpf
