#include "util/page/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>

#include "util/console/terminal.hpp"

namespace cudabpf {

namespace {

constexpr std::array<std::string_view, 9> EIGHTHS = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// How many of `steps` the value fills; at least one unless it is 0.
std::size_t filled(std::uint64_t value, std::uint64_t most, std::size_t steps) {
  if (!value || !most) return 0;
  double part = static_cast<double>(value) / static_cast<double>(most);
  auto full = static_cast<std::size_t>(std::llround(part * static_cast<double>(steps)));
  return std::clamp<std::size_t>(full, 1, steps);
}

std::uint64_t round_step(std::uint64_t span, std::size_t at_most) {
  std::uint64_t least = span / std::max<std::size_t>(at_most, 1) + 1;
  for (std::uint64_t ten = 1;; ten *= 10)
    for (std::uint64_t times : {1U, 2U, 5U})
      if (ten * times >= least || ten > span) return ten * times;
}

// "14:03:22.5", so many decimals as the step has.
std::string time_of_day(std::uint64_t since_midnight, std::uint64_t step) {
  constexpr std::uint64_t SECOND = 1'000'000'000, DAY = 24 * 3600;
  std::uint64_t seconds = since_midnight / SECOND % DAY;
  std::string text =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  std::string decimals = fmt::format("{:09}", since_midnight % SECOND);
  std::size_t size = 0;
  for (std::uint64_t unit = SECOND; unit > 1 && step % unit; unit /= 10) size++;
  return size ? text + "." + decimals.substr(0, size) : text;
}

std::vector<std::uint64_t> multiples(std::uint64_t step, std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> marks;
  std::uint64_t mark = from / step * step;
  if (mark < from) mark += step;
  for (; mark <= to; mark += step) {
    marks.push_back(mark);
    if (to - mark < step) break;  // so that the largest numbers do not wrap around
  }
  return marks;
}

}  // namespace

std::string spark(std::span<const std::uint64_t> values, std::uint64_t most) {
  return tall_spark(values, most, 1).front();
}

std::vector<std::string> tall_spark(std::span<const std::uint64_t> values, std::uint64_t most,
                                    std::size_t rows) {
  std::vector<std::string> lines(rows);
  for (std::uint64_t value : values) {
    std::size_t height = filled(value, most, rows * 8);
    for (std::size_t row = 0; row < rows; row++) {
      std::size_t below = (rows - 1 - row) * 8;
      lines[row] += EIGHTHS[height > below ? std::min<std::size_t>(height - below, 8) : 0];
    }
  }
  return lines;
}

std::vector<std::uint64_t> time_marks(std::uint64_t from, std::uint64_t to, std::size_t at_most) {
  return multiples(round_step(to - from, at_most), from, to);
}

std::vector<std::uint64_t> byte_marks(std::uint64_t most, std::size_t at_most) {
  std::uint64_t least = most / std::max<std::size_t>(at_most, 1) + 1;
  if (least > std::uint64_t{1} << 62) return {0};
  return multiples(std::bit_ceil(least), 0, most);
}

std::string mark_time(std::uint64_t ns, std::uint64_t step) {
  if (!ns) return "0";
  constexpr std::pair<std::uint64_t, std::string_view> UNITS[] = {
      {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "µs"}, {1, "ns"}};
  std::uint64_t largest = std::max(ns, step);
  const auto* unit = std::begin(UNITS);
  while (unit->first > largest) unit++;
  int decimals = 0;
  for (std::uint64_t part = unit->first; part > 1 && step % part; part /= 10) decimals++;
  return fmt::format("{:.{}f} {}", static_cast<double>(ns) / static_cast<double>(unit->first),
                     decimals, unit->second);
}

TextAxis time_axis(std::uint64_t from, std::uint64_t to, std::size_t width,
                   const Moments& moments) {
  TextAxis axis;
  from += moments.since_midnight();
  to = std::max(to + moments.since_midnight(), from + 1);
  auto marks = time_marks(from, to, width / (moments.are_of_day() ? 18 : 11));
  std::uint64_t step = marks.size() > 1 ? marks[1] - marks[0] : to - from;
  std::size_t next = 0, labelled = 0;  // characters
  for (std::size_t column = 0; column < width; column++) {
    std::uint64_t end =
        from + (to - from) / width * (column + 1) + (to - from) % width * (column + 1) / width;
    bool marked = next < marks.size() && (marks[next] < end || column + 1 == width);
    axis.line += marked ? "┴" : "─";
    if (!marked) continue;
    std::string label =
        moments.are_of_day() ? time_of_day(marks[next], step) : mark_time(marks[next], step);
    next++;
    while (next < marks.size() && marks[next] < end) next++;
    std::size_t size = label.size() - (label.find("µ") != std::string::npos);
    if (column < labelled || column + size > width) continue;
    axis.labels += std::string(column - labelled, ' ') + label;
    labelled = column + size;
  }
  return axis;
}

}  // namespace cudabpf
