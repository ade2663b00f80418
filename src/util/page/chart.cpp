#include "util/page/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>

#include "util/console/terminal.hpp"
#include "util/text/printable.hpp"

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

// "14:03:22.5", with as many decimals as the step has.
std::string time_of_day(std::uint64_t since_midnight, std::uint64_t step) {
  constexpr std::uint64_t SECOND = 1'000'000'000, DAY = std::uint64_t{24} * 3600;
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

ScaleMarks scale_marks(const TimeScale& scale, std::size_t at_most, const Moments& moments) {
  ScaleMarks marks{round_step(scale.time(), at_most), {}};
  std::uint64_t midnight = moments.since_midnight();
  for (const TimeScale::Piece& piece : scale.pieces())
    for (std::uint64_t time : multiples(marks.step, piece.begin + midnight, piece.end + midnight))
      marks.times.push_back(time - midnight);
  return marks;
}

std::string fold_label(const TimeScale& scale, std::size_t piece) {
  return human_time(scale.pieces()[piece + 1].begin - scale.pieces()[piece].end) + " folded";
}

namespace {

// A line of labels, each where there is still room for it and a blank on either side.
class Labels {
 public:
  explicit Labels(std::size_t width) : cells_(width, " "), taken_(width) {}

  bool put(std::size_t at, std::string_view label) {
    std::size_t end = at + width_of(label);
    if (end > cells_.size()) return false;
    for (std::size_t i = at ? at - 1 : 0; i < std::min(end + 1, cells_.size()); i++)
      if (taken_[i]) return false;
    for (; at < end; at++) {
      std::size_t size = first_character(label).size;
      cells_[at] = label.substr(0, size);
      taken_[at] = true;
      label.remove_prefix(size);
    }
    return true;
  }
  std::string take() const {
    std::string text;
    for (const std::string& cell : cells_) text += cell;
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

 private:
  std::vector<std::string> cells_;
  std::vector<bool> taken_;
};

}  // namespace

TextAxis time_axis(const TimeScale& scale, const Moments& moments) {
  const std::size_t mark_width = moments.are_of_day() ? 18 : 11;
  std::vector<std::string> line(scale.width(), "─");
  Labels labels(scale.width());
  const auto& pieces = scale.pieces();
  for (std::size_t i = 0; i + 1 < pieces.size(); i++) {
    std::size_t at = pieces[i].at + pieces[i].width;
    line[at] = FOLD;
    for (std::size_t more = 1; more < scale.fold(); more++) line[at + more].clear();
    std::string label = fold_label(scale, i);
    for (const std::string& fitting : {label, label.substr(0, label.rfind(' '))}) {
      std::size_t half = (width_of(fitting) - scale.fold()) / 2;
      if (labels.put(at > half ? at - half : 0, fitting)) break;
    }
  }
  ScaleMarks marks = scale_marks(scale, scale.width() / mark_width, moments);
  for (std::uint64_t mark : marks.times) {
    auto at = std::min(static_cast<std::size_t>(scale.position(mark)), scale.width() - 1);
    if (line[at] != "─") continue;
    line[at] = "┴";
    labels.put(at, moments.are_of_day() ? time_of_day(mark + moments.since_midnight(), marks.step)
                                        : mark_time(mark, marks.step));
  }
  TextAxis axis{{}, labels.take()};
  for (const std::string& cell : line) axis.line += cell;
  return axis;
}

}  // namespace cudabpf
