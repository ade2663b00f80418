#include "util/console/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>

#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

unsigned columns_wanted() {
  unsigned width = 0;
  if (const char* columns = std::getenv("COLUMNS"))
    std::from_chars(columns, columns + std::strlen(columns), width);
  return width;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})  // the first that is set counts
    if (const char* locale = std::getenv(name); locale && *locale)
      return ::strcasestr(locale, "utf-8") || ::strcasestr(locale, "utf8");
  return false;
}

// Three significant digits.
std::string scaled(double value, const char* unit) {
  int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

// The first unit is one step, each further one a step more.
std::string in_units(double value, double step, std::span<const char* const> units) {
  constexpr double HALF = 0.5;  // what would be rounded up to the next unit is shown in that one
  std::size_t unit = 0;
  for (value /= step; value >= step - HALF && unit + 1 < units.size(); unit++) value /= step;
  return scaled(value, units[unit]);
}

}  // namespace

Terminal terminal_of(int fd) {
  Terminal terminal;
  terminal.is_terminal = ::isatty(fd) == 1;
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  terminal.color =
      terminal.is_terminal && !(no_color && *no_color) && term && std::string_view(term) != "dumb";
  terminal.utf8 = locale_is_utf8();
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col) {
    terminal.width = size.ws_col;
    terminal.height = size.ws_row;
  }
  if (unsigned width = columns_wanted()) terminal.width = width;
  return terminal;
}

std::size_t rows_of(std::string_view text, unsigned width) {
  std::size_t rows = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::size_t columns = 0;
    while (!line.empty()) {
      std::string_view plain = line.substr(0, line.find('\033'));
      columns += width_of(plain);
      line.remove_prefix(plain.size());
      if (line.empty()) break;
      line.remove_prefix(std::min(line.find('m'), line.size() - 1) + 1);
    }
    rows += std::max<std::size_t>(1, (columns + width - 1) / width);
  }
  return rows;
}

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", with_commas(count), count == 1 ? one : many);
}

std::string human_count(std::uint64_t number) {
  if (number < 100'000'000) return with_commas(number);
  auto value = static_cast<double>(number);
  if (number < 999'500'000) return scaled(value / 1e6, "M");
  return value < 999.5e9 ? scaled(value / 1e9, "G") : scaled(value / 1e12, "T");
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr const char* UNITS[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  return in_units(static_cast<double>(bytes), 1024, UNITS);
}

std::string human_rate(double rate) {
  constexpr const char* UNITS[] = {"kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
  constexpr double LEAST = 999.5, MAX = 999.5e15;  // which would show as 1,000 of their units
  if (!(rate >= LEAST)) return fmt::format("{:.0f} B/s", std::max(rate, 0.0));
  if (rate >= MAX) return ">1000 PB/s";  // a trace may claim anything
  return in_units(rate, 1000, UNITS);
}

std::string human_time(std::uint64_t ns) {
  if (ns < 1000) return fmt::format("{} ns", ns);
  auto value = static_cast<double>(ns);
  if (ns < 999'500) return scaled(value / 1e3, "µs");
  if (ns < 999'500'000) return scaled(value / 1e6, "ms");
  if (ns < 1000'000'000'000) return scaled(value / 1e9, "s");
  constexpr std::uint64_t HOUR = 3'600'000'000'000;
  if (ns < 100 * HOUR) return clock_time(ns) + (ns < HOUR ? " min" : " h");
  return scaled(value / static_cast<double>(24 * HOUR), "d");
}

std::string human_energy(double joules) {
  constexpr double KILO = 1000;
  double size = std::abs(joules);
  const char* sign = joules < 0 ? "-" : "";
  if (size >= 10 * KILO) return fmt::format("{}{:.2f} kJ", sign, size / KILO);
  if (size < 100) return fmt::format("{}{:.3g} J", sign, size);
  return fmt::format("{}{} J", sign, with_commas(static_cast<std::uint64_t>(std::llround(size))));
}

std::string clock_time(std::uint64_t ns) {
  std::uint64_t seconds = ns / 1'000'000'000;
  std::string text = fmt::format("{:02}:{:02}", seconds / 60 % 60, seconds % 60);
  return seconds < 3600 ? text : fmt::format("{}:{}", seconds / 3600, text);
}

}  // namespace cudabpf
