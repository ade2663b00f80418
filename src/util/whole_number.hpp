// Text that is a number and nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace cudabpf {

// Nothing: it is none, or none that such a Number can be.
template <typename Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// False: `number` stays as it is.
template <typename Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  auto read = whole_number<Number>(text, base);
  if (read) number = *read;
  return read.has_value();
}

}  // namespace cudabpf
