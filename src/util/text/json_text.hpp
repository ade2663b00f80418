// Reads texts and numbers from untrusted JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudabpf {

// Discarded: it is not JSON. Compiling the parser takes seconds, so this is done once.
nlohmann::json parsed(std::string_view text);

// Null: there is no member of that name.
template <typename Json>
const Json* member_of(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

// Empty: there is no member of that name, or it is not a text.
template <typename Json>
std::string text_in(const Json& object, const char* key) {
  const Json* text = member_of(object, key);
  return text && text->is_string() ? text->template get<std::string>() : std::string();
}

// Nothing: there is no member of that name, or it is not a whole number.
template <typename Json>
std::optional<std::int64_t> integer_in(const Json& object, const char* key) {
  const Json* number = member_of(object, key);
  if (!number || !number->is_number_integer()) return std::nullopt;
  return number->template get<std::int64_t>();
}

// Nothing: there is no member of that name, or it is not a whole number that a Number can hold.
template <typename Number, typename Json>
std::optional<Number> number_in(const Json& object, const char* key) {
  const Json* number = member_of(object, key);
  if (!number || !number->is_number_integer()) return std::nullopt;
  auto in_range = [](auto value) {
    return std::in_range<Number>(value) ? std::optional(static_cast<Number>(value)) : std::nullopt;
  };
  return number->is_number_unsigned() ? in_range(number->template get<std::uint64_t>())
                                      : in_range(number->template get<std::int64_t>());
}

// Nothing: there is no member of that name, or it is neither true nor false.
template <typename Json>
std::optional<bool> flag_in(const Json& object, const char* key) {
  const Json* flag = member_of(object, key);
  if (!flag || !flag->is_boolean()) return std::nullopt;
  return flag->template get<bool>();
}

// Null: there is no member of that name, or it is not a list.
template <typename Json>
const Json* list_in(const Json& object, const char* key) {
  const Json* list = member_of(object, key);
  return list && list->is_array() ? list : nullptr;
}

// The texts in a list, at most this many; other items are passed over.
template <typename Json>
std::vector<std::string> texts_in(const Json& object, const char* key, std::size_t most) {
  std::vector<std::string> texts;
  if (const Json* list = list_in(object, key))
    for (const Json& text : *list)
      if (text.is_string() && texts.size() < most)
        texts.push_back(text.template get<std::string>());
  return texts;
}

// Nothing in a trace nests this deep. JSON values are copied, compared and written recursively, and
// one that did would overflow the stack.
inline bool nests_too_deep(std::string_view json) {
  constexpr std::size_t MAX = 64;
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
    if (depth > MAX) return true;
  }
  return false;
}

}  // namespace cudabpf
