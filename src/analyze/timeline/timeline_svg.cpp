#include <fmt/format.h>

#include <algorithm>

#include "analyze/timeline/timeline.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"
#include "util/page/page.hpp"
#include "util/page/svg.hpp"

namespace cudabpf::analyze {

namespace {

using Bar = TimelineBars::Bar;

constexpr double LEFT = 170, WIDTH = 1400, RIGHT = 20, TOP = 80;
constexpr double ROW = 18, BAR = 15, LANE_GAP = 6, HEADING = 24, LEAST = 0.3;
constexpr double LETTER = 6;  // the width of a letter in bars

class Gantt {
 public:
  Gantt(const Timeline& timeline, std::string_view title, double height)
      : timeline_(timeline), svg_(LEFT + WIDTH + RIGHT, height, title) {
    svg_.text(10, 22, title, 16);
  }

  std::string draw() {
    draw_legend();
    for (const auto& process : timeline_.processes()) {
      if (process.threads.empty()) continue;
      y_ += HEADING;
      svg_.text(10, y_ - 6, name_of(timeline_, process), 13);
      for (std::size_t index : process.threads) draw_thread(timeline_.thread(index));
      for (std::size_t index : process.streams) draw_stream(timeline_.stream(index));
    }
    draw_axis();
    return svg_.take();
  }

  // What draw() will need.
  static double height_of(const Timeline& timeline) {
    double height = TOP + 50;
    for (const auto& process : timeline.processes()) {
      if (process.threads.empty()) continue;
      height += HEADING;
      for (std::size_t index : process.threads) {
        for (const auto& row : timeline.thread(index).bars) height += row.empty() ? 0 : ROW;
        height += LANE_GAP;
      }
      height += static_cast<double>(process.streams.size()) * (ROW + LANE_GAP);
    }
    return height;
  }

 private:
  double x_of(std::uint64_t since_begin) const {
    return LEFT + WIDTH * share(since_begin, timeline_.to() - timeline_.from()) / 100;
  }

  void draw_thread(const Timeline::Thread& thread) {
    constexpr std::string_view LABELS[] = {"", "inside these", "driver"};
    std::string label = fmt::format("thread {}", thread.tid);
    for (std::size_t row = 0; row < TimelineBars::ROWS; row++) {
      if (thread.bars[row].empty()) continue;
      if (row) label += (label.empty() ? "" : ", ") + std::string(LABELS[row]);
      svg_.text(LEFT - 8, y_ + 12, label, 11, Svg::Anchor::end);
      label.clear();
      for (const Bar& bar : thread.bars[row]) draw_bar(bar);
      y_ += ROW;
    }
    y_ += LANE_GAP;
  }

  void draw_bar(const Bar& bar) {
    double x = x_of(bar.begin), width = std::max(x_of(bar.end) - x, LEAST);
    const CategoryLook& look = look_of(bar.category);
    std::string name(timeline_.names().text(bar.name));
    std::string what(timeline_.names().text(bar.what));
    std::string told = bar.count > 1 ? count_of(bar.count, "call", "calls") + " " : "";
    told += name.empty() ? "of several functions" : name;
    if (!what.empty()) told += " " + what;
    told += fmt::format("\n{}, {} at {}", look.name, human_time(bar.busy),
                        human_time(timeline_.from() + bar.begin));
    svg_.rect(x, y_, width, BAR, look.svg, told);
    std::string text = what.empty() ? name : what;
    auto letters = static_cast<std::size_t>(width / LETTER);
    if (letters > 4 && !text.empty())
      svg_.text(x + 2, y_ + 11, shortened(text, letters), 10, Svg::Anchor::start, "#ffffff");
  }

  // A curve of how many calls put something on the stream.
  void draw_stream(const Timeline::Stream& stream) {
    svg_.text(LEFT - 8, y_ + 12, name_of(stream), 11, Svg::Anchor::end);
    constexpr std::size_t COLUMNS = static_cast<std::size_t>(WIDTH) / 2;
    auto counts = timeline_.columns(stream, COLUMNS);
    std::uint64_t most = *std::max_element(counts.begin(), counts.end());
    std::vector<Svg::Point> points = {{LEFT, y_ + BAR}};
    for (std::size_t i = 0; i < COLUMNS; i++) {
      double x = LEFT + static_cast<double>(i) * 2, height = BAR * share(counts[i], most) / 100;
      points.emplace_back(x, y_ + BAR - height);
      points.emplace_back(x + 2, y_ + BAR - height);
    }
    points.emplace_back(LEFT + WIDTH, y_ + BAR);
    svg_.polygon(points, "#4a4a4a",
                 fmt::format("{} on it", count_of(stream.enqueued, "call", "calls")));
    y_ += ROW + LANE_GAP;
  }

  void draw_legend() {
    double x = LEFT;
    for (std::size_t i = 0; i <= CATEGORIES; i++) {
      const CategoryLook& look = look_of(static_cast<Category>(i));
      svg_.rect(x, 34, 12, 12, look.svg);
      svg_.text(x + 16, 44, look.name, 12);
      x += 30 + 7.5 * static_cast<double>(look.name.size());
    }
    std::string note = "A stream's row: how many calls put something on it.";
    if (std::uint64_t within = timeline_.bars().merged_within())
      note += fmt::format(
          " Calls of one type less than {0} apart are one bar, and calls shorter than {0}.",
          human_time(within));
    svg_.text(LEFT, 64, note, 11);
  }

  void draw_axis() {
    auto marks = time_marks(timeline_.from(), timeline_.to(), 14);
    std::uint64_t step = marks.size() > 1 ? marks[1] - marks[0] : timeline_.to();
    svg_.line(LEFT, y_ + 4, LEFT + WIDTH, y_ + 4, "#222222");
    for (std::uint64_t mark : marks) {
      double x = x_of(mark - timeline_.from());
      svg_.line(x, TOP, x, y_ + 8, "#d0d0d0", 0.5);
      std::string time = mark_time(mark, step);
      svg_.text(x, y_ + 22, time, 11, svg_.fitting(x, time, 11));
    }
  }

  const Timeline& timeline_;
  Svg svg_;
  double y_ = TOP;
};

}  // namespace

std::string timeline_svg(const Timeline& timeline, std::string_view title) {
  return Gantt(timeline, title, Gantt::height_of(timeline)).draw();
}

}  // namespace cudabpf::analyze
