// A part of the timeline's picture: lanes above an axis.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/timeline/timeline_tooltips.hpp"
#include "analyze/timeline/timeline_view.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"
#include "util/page/page.hpp"
#include "util/page/svg.hpp"

namespace cudabpf::analyze {

class TimelineSection {
 public:
  static constexpr double LEFT = 200, RIGHT = 20;  // beside all lanes
  static constexpr std::size_t WIDTH = 1400;       // of lanes

  TimelineSection(Svg& svg, const Timeline& timeline, const std::vector<TimeSpan>& spans,
                  std::uint64_t resolution, double top)
      : svg_(svg),
        timeline_(timeline),
        scale_(spans, WIDTH, FOLD_PIXELS),
        resolution_(resolution),
        top_(top),
        y_(top) {}

  // Rows drawn from now on are of this process, which is named above the first of them.
  void begin(const Timeline::Process& process) {
    process_ = &process;
    rows_of_threads_ = {};
  }

  void execution_of(const Timeline::Process& process, bool with_iterations) {
    const Execution& execution = timeline_.execution();
    if (!execution.thread() || execution.thread()->process != process.number) return;
    draw_phases(execution.phases());
    if (with_iterations && !execution.iterations().each.empty())
      draw_iterations(execution.iterations());
  }

  // What the thread was doing by the program's own account, the outermost ranges first.
  void ranges(const Timeline::Thread& thread) {
    std::string name = fmt::format("ranges of {}", thread.tid);
    for (const BarRow& row : thread.ranges) {
      if (!is_shown(row)) continue;
      label(std::exchange(name, {}));
      bool odd = false;
      each_drawn(row, [&](const Bar& bar, const auto& piece) {
        odd = !odd;
        draw_range(bar, piece, odd);
      });
      y_ += ROW;
    }
  }

  void thread(const Timeline::Thread& thread, std::size_t rows) {
    constexpr std::string_view LABELS[] = {"", "inside these", "driver"};
    std::string name = fmt::format("thread {}", thread.tid);
    bool drawn = false;
    for (std::size_t row = 0; row < rows; row++) {
      if (!is_shown(thread.bars[row])) continue;
      std::string what(LABELS[row]);
      label(drawn ? what : what.empty() ? name : fmt::format("{}, {}", name, what));
      rows_of_threads_.try_emplace(thread.tid, y_);
      BarsOf of = row == DRIVER ? BarsOf::driver : BarsOf::thread;
      each_drawn(thread.bars[row],
                 [&](const Bar& bar, const auto& piece) { draw(bar, piece, of); });
      y_ += ROW;
      drawn = true;
    }
    if (drawn) y_ += LANE_GAP;
  }

  // Bars as high as their calls are dense.
  void stream(const Timeline::Stream& stream) {
    auto density = [](const Bar& bar, double width) {
      return static_cast<double>(bar.total().count) / std::max(width, 1.0);
    };
    double most = 0;
    each_drawn(stream.bars, [&](const Bar& bar, const auto& piece) {
      most = std::max(most, density(bar, edges(bar, piece).second));
    });
    if (most == 0) return;
    label(name_of(stream) + ", enqueued");
    each_drawn(stream.bars, [&](const Bar& bar, const auto& piece) {
      auto [x, width] = edges(bar, piece);
      double height = std::max(BAR * density(bar, width) / most, BAR / 4);
      svg_.rect(x, y_ + BAR - height, width, height, "#4a4a4a",
                tooltip(timeline_, bar, BarsOf::stream));
    });
    y_ += ROW + LANE_GAP;
  }

  // When the process's GPU times were recorded, if they were not always.
  void gpu_windows(const Timeline::Process& process) {
    constexpr double HEIGHT = 3;
    bool drawn = false;
    for (const TimeSpan& window : process.windows)
      for (const TimeScale::Piece& piece : scale_.pieces()) {
        TimeSpan here{std::max(window.begin, piece.begin), std::min(window.end, piece.end)};
        if (here.begin >= here.end) continue;
        if (!drawn) label("GPU times recorded");
        drawn = true;
        auto x = x_at(here.begin), end = x_at(here.end);
        if (x && end)
          svg_.rect(*x, y_ + BAR - HEIGHT, std::max(*end - *x, 1.0), HEIGHT, "#777777",
                    "GPU times were recorded for " + human_time(window.time()));
      }
    if (drawn) y_ += ROW;
  }

  // A bar that stands for several operations is as high as the share of its width in which they
  // ran. Operations that visibly overlap are drawn below.
  void queue(std::size_t index) {
    constexpr std::size_t LETTERS = 33;
    constexpr double SMALL = 10, VISIBLE = 1;
    const Timeline::Queue& queue = timeline_.gpu_queue(index);
    std::array<double, 4> ends{};  // of what is drawn in each line
    std::size_t lines = 0;
    each_drawn(queue.bars, [&](const Bar& bar, const auto& piece) {
      if (!lines) label(shortened(full_name(queue), LETTERS), SMALL);
      auto [x, width] = edges(bar, piece);
      std::size_t line = 0;
      while (line + 1 < ends.size() && ends[line] > x + VISIBLE) line++;
      ends[line] = x + width;
      lines = std::max(lines, line + 1);
      draw_work(bar, index, {x, width}, y_ + ROW * static_cast<double>(line));
    });
    if (lines) y_ += ROW * static_cast<double>(lines) + LANE_GAP;
  }

  // From each call to the GPU operation that it issued, while that can be read; for a graph, to the
  // first.
  void arrows() {
    std::vector<std::array<double, 4>> lines;
    for (const auto& [work, y] : tops_of_operations_) {
      if (!work->is_first || lines.size() > ARROWS_DRAWN) continue;
      auto from = rows_of_threads_.find(work->issuer->tid);
      auto begin = x_at(work->issuer->ts), end = x_at(work->span.begin);
      if (from != rows_of_threads_.end() && begin && end)
        lines.push_back({*begin, from->second + BAR, *end, y});
    }
    tops_of_operations_ = {};
    if (lines.size() > ARROWS_DRAWN) return;
    for (auto [x1, y1, x2, y2] : lines) {
      svg_.line(x1, y1, x2, y2, "#777777", 0.5);
      Svg::Point head[] = {{x2, y2}, {x2 - 2, y2 - 4}, {x2 + 2, y2 - 4}};
      svg_.polygon(head, "#777777");
    }
  }

  // As high as the mean activity of its SMs.
  void gpu(std::uint32_t device, const GpuActivity& activity) {
    constexpr std::size_t STEP = 8;  // pixels
    auto means = activity.columns(scale_);
    label(fmt::format("GPU {}, SM activity", device));
    for (std::size_t at = 0; at < means.size(); at += STEP) {
      std::uint64_t mean = *std::max_element(
          means.begin() + static_cast<std::ptrdiff_t>(at),
          means.begin() + static_cast<std::ptrdiff_t>(std::min(at + STEP, means.size())));
      double height = BAR * static_cast<double>(mean) / 100;
      if (mean)
        svg_.rect(x_of(at), y_ + BAR - height, STEP, height, "#76a05c", fmt::format("{} %", mean));
    }
    y_ += ROW + LANE_GAP;
  }

  // The axis. Returns where it ends.
  double finish() {
    const auto& pieces = scale_.pieces();
    double labelled = 0;
    for (std::size_t i = 0; i < pieces.size(); i++) {
      double from = x_of(pieces[i].at), to = x_of(pieces[i].at + pieces[i].width);
      svg_.line(from, y_ + 4, to, y_ + 4, "#222222");
      if (i + 1 == pieces.size()) break;
      std::string label = fold_label(scale_, i);
      svg_.rect(to + 2, top_, FOLD_PIXELS - 4, y_ - top_, "#f0f0f0", label);
      double middle = to + FOLD_PIXELS / 2.0;
      svg_.text(middle, y_ + 8, FOLD, 12, Svg::Anchor::middle);
      double half = LETTER * static_cast<double>(label.size()) / 2;
      if (middle - half < labelled) continue;  // the mouse shows
      labelled = middle + half;
      svg_.text(middle, y_ + 36, label, 11, svg_.fitting(middle, label, 11));
    }
    ScaleMarks marks = scale_marks(scale_, 14);
    for (std::uint64_t mark : marks.times) {
      double x = LEFT + scale_.position(mark);
      svg_.line(x, top_, x, y_ + 8, "#d0d0d0", 0.5);
      std::string time = mark_time(mark, marks.step);
      svg_.text(x, y_ + 22, time, 11, svg_.fitting(x, time, 11));
    }
    return y_ + 50;
  }

 private:
  static constexpr std::size_t FOLD_PIXELS = 24;
  static constexpr double ROW = 18, BAR = 15, LANE_GAP = 6, HEADING = 24, LEAST = 0.3;
  static constexpr double LETTER = 6;  // the width of a letter in bars
  static constexpr std::size_t ITERATIONS_DRAWN = 300;
  static constexpr std::size_t ARROWS_DRAWN = 60;  // if there are more, none is
  static constexpr std::size_t MAX_NAME = 60;      // of a process; letters

  static double x_of(std::size_t pixel) { return LEFT + static_cast<double>(pixel); }
  // Nothing: that time is not shown.
  std::optional<double> x_at(std::uint64_t ns) const {
    for (const TimeScale::Piece& piece : scale_.pieces())
      if (ns >= piece.begin && ns <= piece.end) return LEFT + piece.position(ns);
    return {};
  }

  void label(const std::string& text, double size = 11) {
    if (process_) {
      y_ += HEADING;
      svg_.text(10, y_ - 6, shortened(name_of(timeline_, *process_), MAX_NAME), 13);
      process_ = nullptr;
    }
    svg_.text(LEFT - 8, y_ + 12, text, size, Svg::Anchor::end);
  }

  bool is_shown(const BarRow& row) const {
    bool any = false;
    for (const TimeScale::Piece& piece : scale_.pieces())
      each_group(row, piece.begin, piece.end, 0, [&](auto) { any = true; });
    return any;
  }

  template <typename Each>
  void each_drawn(const BarRow& row, Each&& each) {
    for (const TimeScale::Piece& piece : scale_.pieces())
      each_bar(row, piece.begin, piece.end, resolution_, [&](const Bar& bar) { each(bar, piece); });
  }

  // Where what lies in the piece begins, and how wide it is.
  static std::pair<double, double> edges(const TimeSpan& span, const TimeScale::Piece& piece) {
    double x = LEFT + piece.position(std::max(span.begin, piece.begin));
    double end = LEFT + piece.position(std::clamp(span.end, piece.begin, piece.end));
    return {x, std::max(end - x, LEAST)};
  }

  void draw(const Bar& bar, const TimeScale::Piece& piece, BarsOf of) {
    auto [x, width] = edges(bar, piece);
    Alike total = bar.total();
    const CategoryLook& look = look_of(total.category);
    svg_.rect(x, y_, width, BAR, look.svg, tooltip(timeline_, bar, of));
    auto letters = static_cast<std::size_t>(width / LETTER);
    if (letters < 5) return;
    std::string name = count_of(total.count, "call", "calls");
    if (bar.is_one()) {
      bool kernel = of == BarsOf::thread && total.what;
      name = kernel ? timeline_.short_name(total.what)
                    : timeline_.names().text(total.what ? total.what : total.name);
    }
    svg_.text(x + 2, y_ + 11, shortened(name, letters), 10, Svg::Anchor::start,
              look.waits ? "#444444" : "#ffffff");
  }

  void draw_work(const Bar& bar, std::size_t queue, std::pair<double, double> place, double top) {
    auto [x, width] = place;
    Alike total = bar.total();
    double busy = bar.is_one() ? 1 : share(bar.covered(), bar.time()) / 100;
    double height = BAR * std::clamp(busy, 0.1, 1.0);
    svg_.rect(x, top + BAR - height, width, height, look_of(total.category).svg,
              gpu_tooltip(timeline_, bar, queue));
    const QueuedOperation* work = bar.is_one() ? timeline_.work_at(queue, bar) : nullptr;
    if (!work) return;
    tops_of_operations_.try_emplace(work, top);
    auto letters = static_cast<std::size_t>(width / LETTER);
    if (letters >= 5)
      svg_.text(x + 2, top + 11, shortened(timeline_.name_of(*work), letters), 10,
                Svg::Anchor::start, "#ffffff");
  }

  void draw_range(const Bar& bar, const TimeScale::Piece& piece, bool odd) {
    auto [x, width] = edges(bar, piece);
    Alike total = bar.total();
    std::string name = bar.is_one() ? printable(timeline_.names().text(bar.parts().front().name))
                                    : count_of(total.count, "range", "ranges");
    svg_.rect(x, y_, width, BAR, odd ? "#e6d9f2" : "#f2eaf8",
              fmt::format("{}\n{} at {}", shortened(name, MAX_NAME), human_time(total.time),
                          seconds(bar.begin)));
    auto letters = static_cast<std::size_t>(width / LETTER);
    if (letters > 2) svg_.text(x + 2, y_ + 11, shortened(name, letters), 10);
  }

  void draw_phases(const Phases& phases) {
    bool any = false, odd = false;
    for (const Phase* phase : windows(phases)) {
      odd = !odd;
      for (const TimeScale::Piece& piece : scale_.pieces()) {
        if (phase->end <= piece.begin || phase->begin >= piece.end) continue;
        if (!any) label("phases");
        any = true;
        auto [x, width] = edges({phase->begin, phase->end}, piece);
        std::string note =
            fmt::format("{}\n{}, {} to {}", phase->name, human_time(phase->end - phase->begin),
                        seconds(phase->begin), seconds(phase->end));
        if (!phase->note.empty()) note += "\n" + phase->note;
        svg_.rect(x, y_, width, BAR, odd ? "#d5deee" : "#e8edf6", note);
        auto letters = static_cast<std::size_t>(width / LETTER);
        if (letters > 2) svg_.text(x + 2, y_ + 11, shortened(phase->name, letters), 10);
      }
    }
    if (any) y_ += ROW;
  }

  // Several as one where there are more than can be distinguished.
  void draw_iterations(const Iterations& iterations) {
    const auto& each = iterations.each;
    auto first = std::partition_point(
        each.begin(), each.end(), [&](const Iteration& one) { return one.end <= scale_.begin(); });
    auto last = std::partition_point(
        first, each.end(), [&](const Iteration& one) { return one.begin < scale_.end(); });
    if (first == last) return;
    auto count = static_cast<std::size_t>(last - first);
    std::size_t step = (count + ITERATIONS_DRAWN - 1) / ITERATIONS_DRAWN;
    label(count_of(count, "iteration", "iterations"));
    for (std::size_t i = 0; i < count; i += step) {
      std::size_t end = std::min(i + step, count);
      draw_iteration({&first[static_cast<std::ptrdiff_t>(i)], end - i},
                     static_cast<std::size_t>(first - each.begin()) + i);
    }
    y_ += ROW;
  }

  void draw_iteration(std::span<const Iteration> some, std::size_t number) {
    std::uint64_t time = 0, launches = 0;
    for (const Iteration& one : some) {
      time += one.end - one.begin;
      launches += one.launches;
    }
    bool warm_up = number < timeline_.execution().iterations().warm_up;
    TimeSpan span{some.front().begin, some.back().end};
    std::string note = some.size() == 1
                           ? fmt::format("iteration {}: {}", number + 1, human_time(time))
                           : fmt::format("iterations {} to {}: {} each, on average", number + 1,
                                         number + some.size(), human_time(time / some.size()));
    note += fmt::format("\n{}, {} to {}", count_of(launches, "launch", "launches"),
                        seconds(span.begin), seconds(span.end));
    if (warm_up) note += "\nwarm-up";
    bool odd = number / some.size() % 2;
    for (const TimeScale::Piece& piece : scale_.pieces()) {
      if (span.end <= piece.begin || span.begin >= piece.end) continue;
      auto [x, width] = edges(span, piece);
      svg_.rect(x, y_, width, BAR, odd ? "#c9d8c6" : "#dfe9dc", note);
      std::string text = fmt::format("{}", number + 1);
      if (some.size() == 1 && width > LETTER * static_cast<double>(text.size() + 1))
        svg_.text(x + 2, y_ + 11, text, 10);
    }
  }

  Svg& svg_;
  const Timeline& timeline_;
  TimeScale scale_;
  std::uint64_t resolution_;
  const Timeline::Process* process_ = nullptr;  // that is not named yet
  double top_, y_;
  // Where this process's rows of threads are, by tid, and the bars of what GPUs did.
  std::map<std::uint32_t, double> rows_of_threads_;
  std::map<const QueuedOperation*, double> tops_of_operations_;
};

}  // namespace cudabpf::analyze
