// Reads texts and numbers in JSON that somebody else may have written.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace cudabpf::analyze {

// Empty: there is no member of that name, or it is not a text.
template <typename Json>
std::string text_in(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->template get<std::string>() : std::string();
}

// Nothing: there is no member of that name, or it is not a whole number.
template <typename Json>
std::optional<std::int64_t> integer_in(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  auto at = object.find(key);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  return at->template get<std::int64_t>();
}

// Nothing in a trace nests this deep. JSON values are copied, compared and written recursively, and
// one that did would overflow the stack.
inline bool nests_too_deep(std::string_view json) {
  constexpr std::size_t MOST = 64;
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); i++) {
    char c = json[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\';
    else if (c == '{' || c == '[')
      depth++;
    else if ((c == '}' || c == ']') && depth)
      depth--;
    if (depth > MOST) return true;
  }
  return false;
}

}  // namespace cudabpf::analyze
