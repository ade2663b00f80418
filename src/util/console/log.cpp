#include "util/console/log.hpp"

#include <unistd.h>

#include <atomic>
#include <string>

#include "util/text/printable.hpp"

namespace cudabpf::log {

namespace {
std::atomic<Outlet*> g_outlet{nullptr};
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

void set_outlet(Outlet* outlet) { g_outlet = outlet; }
void set_quiet(bool quiet) { g_quiet = quiet; }

static void put(Level level, std::string_view message) {
  std::string line = fmt::format("cudabpf: {}{}\n", prefix(level), printable(message));
  if (Outlet* outlet = g_outlet) return outlet->show(line);
  // One write, so that threads' lines do not mix. If stderr is gone, nothing can be done.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void write(Level level, std::string_view message) {
  if (level != Level::hint || !g_quiet) put(level, message);
}

// One error per failure, so that errors can be counted. Its advice is not dropped as hints are.
void error(const Error& error) {
  put(Level::error, error.message);
  if (!error.hint.empty()) put(Level::hint, error.hint);
}

}  // namespace cudabpf::log
