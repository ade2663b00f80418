#include "util/console/log.hpp"

#include <unistd.h>

#include <atomic>
#include <string>

#include "util/console/screen.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::log {

namespace {
std::atomic<Screen*> g_screen{nullptr};
std::atomic<bool> g_quiet{false};

constexpr std::string_view prefix(Level level) {
  switch (level) {
    case Level::note:
      return "";
    case Level::hint:
      return "hint: ";
    case Level::warning:
      return "warning: ";
    case Level::error:
      return "error: ";
  }
  return "";
}
}  // namespace

void set_screen(Screen* screen) { g_screen = screen; }
void set_quiet(bool quiet) { g_quiet = quiet; }

void write(Level level, std::string_view message) {
  if (level == Level::hint && g_quiet) return;
  std::string line = fmt::format("cudabpf: {}{}\n", prefix(level), printable(message));
  if (Screen* screen = g_screen) return screen->tell(line);
  // One write, so that threads' lines do not mix. If stderr is gone, nothing can be done.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void error(const Error& error) {
  write(Level::error, error.message);
  if (!error.hint.empty()) write(Level::error, "  " + error.hint);
}

}  // namespace cudabpf::log
