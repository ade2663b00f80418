// Text that is a number and nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace cudabpf {

// False: it is none, or none that such a Number can be; then `number` stays as it is.
template <typename Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number number{};
  return read_number(text, number, base) ? std::optional(number) : std::nullopt;
}

}  // namespace cudabpf
