// Messages to the user, on stderr. The four levels mean:
//   NOTE     what a service did, for its journal (--log)
//   HINT     something would serve the user better
//   WARNING  the answer may be poorer than asked for
//   ERROR    this run cannot go on, or ended early
//   BUG      cudabpf itself is wrong; please report
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "util/result.hpp"

namespace cudabpf::log {

enum class Level { note, hint, warning, error };

// While an outlet is set, messages go there instead of straight to stderr.
class Outlet {
 public:
  virtual void show(std::string_view lines) = 0;  // any thread may call it; it must not wait

 protected:
  ~Outlet() = default;
};
void set_outlet(Outlet* outlet);
void set_quiet(bool quiet);                         // drops hints
void write(Level level, std::string_view message);  // makes it printable, on one line

template <typename... T>
void note(fmt::format_string<T...> format, T&&... args) {
  write(Level::note, fmt::format(format, std::forward<T>(args)...));
}
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
