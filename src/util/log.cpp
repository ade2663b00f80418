#include "util/log.hpp"

#include <unistd.h>

#include <atomic>
#include <string>

namespace cudabpf::log {

namespace {
std::atomic<void (*)()> g_clear_line{nullptr};
std::atomic<bool> g_quiet{false};

constexpr std::string_view prefix(Level level) {
  switch (level) {
    case Level::hint:
      return "hint: ";
    case Level::warning:
      return "warning: ";
    case Level::error:
      return "error: ";
    case Level::bug:
      return "BUG: ";
  }
  return "";
}
}  // namespace

void set_line_guard(void (*clear_line)()) { g_clear_line = clear_line; }
void set_quiet(bool quiet) { g_quiet = quiet; }

void write(Level level, std::string_view message) {
  if (level == Level::hint && g_quiet) return;
  if (auto* clear = g_clear_line.load()) clear();
  std::string line = fmt::format("cudabpf: {}{}\n", prefix(level), message);
  // One write, so that lines of several threads do not mix. Nothing can be done if stderr is gone.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void error(const Error& error) {
  write(Level::error, error.message);
  if (!error.hint.empty()) write(Level::error, "  " + error.hint);
}

}  // namespace cudabpf::log
