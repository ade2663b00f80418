#include "sink/top/top_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/console/terminal.hpp"

namespace cudabpf {

namespace {

CopiedBytes copied_by(const TopFigures& figures, Op one, Op other) {
  CopiedBytes sum;
  for (const auto& [op, copies] : figures.copies)
    if (op == one || op == other) {
      sum.count += copies.count;
      sum.bytes += copies.bytes;
    }
  return sum;
}

}  // namespace

double seconds_of(const TopInterval& interval) {
  return std::max(1e-9, static_cast<double>(interval.end_ns - interval.begin_ns) / 1e9);
}

std::string rate_text(std::uint64_t count, double seconds) {
  constexpr double MAX = 1e18;  // an interval may be of no length
  double rate = std::min(MAX, static_cast<double>(count) / seconds);
  return brief_count(static_cast<std::uint64_t>(std::llround(rate)));
}

std::string brief_count(std::uint64_t count) {
  constexpr std::uint64_t MAX_DIGITS = 999'999;
  if (count <= MAX_DIGITS) return with_commas(count);
  constexpr const char* UNITS[] = {"M", "G", "T", "P", "E"};
  double value = static_cast<double>(count) / 1e6;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(UNITS); unit++) value /= 1000;
  int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, UNITS[unit]);
}

std::string percent_text(std::uint64_t ns, double seconds) {
  double percent = static_cast<double>(ns) / 1e7 / seconds;
  return fmt::format("{:.{}f}", percent, percent < 9999.95 ? 1 : 0);
}

CopiedBytes copied_to_gpu(const TopFigures& figures) {
  return copied_by(figures, Op::HtoD, Op::HtoA);
}
CopiedBytes copied_from_gpu(const TopFigures& figures) {
  return copied_by(figures, Op::DtoH, Op::AtoH);
}

std::string held_text(const TopProcess& process, std::uint64_t bytes) {
  if (!process.most_held) return process.holds_unseen ? "?" : "";
  return human_bytes(bytes);
}

std::string place_of(const TopProcess& process) {
  constexpr std::size_t ENOUGH = 12;
  return !process.pod.empty() ? "pod " + process.pod : process.container.substr(0, ENOUGH);
}

}  // namespace cudabpf
