// Messages to the user, on stderr. Four levels with a meaning:
//   HINT     something that would serve the user better
//   WARNING  the answer may be poorer than asked for
//   ERROR    this run cannot go on, or ended short
//   BUG      cudabpf itself is wrong; please report
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "util/result.hpp"

namespace cudabpf {
class Screen;
}

namespace cudabpf::log {

enum class Level { hint, warning, error };

// Where messages go as long as it is there, instead of straight to stderr.
void set_screen(Screen* screen);
void set_quiet(bool quiet);                         // drops hints
void write(Level level, std::string_view message);  // made printable, on one line

template <typename... T>
void hint(fmt::format_string<T...> format, T&&... args) {
  write(Level::hint, fmt::format(format, std::forward<T>(args)...));
}
template <typename... T>
void warning(fmt::format_string<T...> format, T&&... args) {
  write(Level::warning, fmt::format(format, std::forward<T>(args)...));
}
template <typename... T>
void error(fmt::format_string<T...> format, T&&... args) {
  write(Level::error, fmt::format(format, std::forward<T>(args)...));
}
void error(const Error& error);  // the message, then the hint

}  // namespace cudabpf::log
