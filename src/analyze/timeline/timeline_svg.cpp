#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "analyze/timeline/timeline_tooltips.hpp"
#include "analyze/timeline/timeline_view.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"
#include "util/page/page.hpp"
#include "util/page/svg.hpp"

namespace cudabpf::analyze {

namespace {

constexpr double LEFT = 200, RIGHT = 20, TOP = 96;
constexpr std::size_t WIDTH = 1400, FOLD_PIXELS = 24;
constexpr double ROW = 18, BAR = 15, LANE_GAP = 6, HEADING = 24, LEAST = 0.3;
constexpr double LETTER = 6;                                      // the width of a letter in bars
constexpr std::size_t MOST_BYTES = 1'000'000, LEAST_BYTES = 120;  // of a picture; of a bar
constexpr std::size_t ITERATIONS_DRAWN = 300;
constexpr std::size_t LONGEST_NAME = 60, LONGEST_NOTE = 230;  // of a process, above all; letters

// A part of the picture: lanes above an axis.
class Section {
 public:
  Section(Svg& svg, const Timeline& timeline, const std::vector<TimeSpan>& spans,
          std::uint64_t resolution, double top)
      : svg_(svg),
        timeline_(timeline),
        scale_(spans, WIDTH, FOLD_PIXELS),
        resolution_(resolution),
        top_(top),
        y_(top) {}

  // What is drawn next is this process's, which is named above the first of its rows.
  void begin(const Timeline::Process& process) { process_ = &process; }

  void course_of(const Timeline::Process& process, bool with_iterations) {
    const Course& course = timeline_.course();
    if (!course.thread() || course.thread()->process != process.number) return;
    draw_phases(course.phases());
    if (with_iterations && !course.iterations().each.empty()) draw_iterations(course.iterations());
  }

  void thread(const Timeline::Thread& thread, std::size_t rows) {
    constexpr std::string_view LABELS[] = {"", "inside these", "driver"};
    std::string name = fmt::format("thread {}", thread.tid);
    bool drawn = false;
    for (std::size_t row = 0; row < rows; row++) {
      bool any = false;
      for (const auto& piece : scale_.pieces())
        each_group(thread.bars[row], piece.begin, piece.end, 0, [&](auto) { any = true; });
      if (!any) continue;
      std::string what(LABELS[row]);
      label(drawn ? what : what.empty() ? name : fmt::format("{}, {}", name, what));
      BarsOf of = row == Timeline::DRIVER ? BarsOf::driver : BarsOf::thread;
      each_drawn(thread.bars[row],
                 [&](const Bar& bar, const auto& piece) { draw(bar, piece, of); });
      y_ += ROW;
      drawn = true;
    }
    if (drawn) y_ += LANE_GAP;
  }

  // As high as there are many, for what they take of the width.
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
      if (middle - half < labelled) continue;  // the mouse tells
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
  static double x_of(std::size_t pixel) { return LEFT + static_cast<double>(pixel); }

  void label(const std::string& text) {
    if (process_) {
      y_ += HEADING;
      svg_.text(10, y_ - 6, shortened(name_of(timeline_, *process_), LONGEST_NAME), 13);
      process_ = nullptr;
    }
    svg_.text(LEFT - 8, y_ + 12, text, 11, Svg::Anchor::end);
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

  void draw_phases(const Phases& phases) {
    bool any = false, odd = false;
    for (const Phase* phase : windows(phases)) {
      odd = !odd;
      for (const TimeScale::Piece& piece : scale_.pieces()) {
        if (phase->end <= piece.begin || phase->begin >= piece.end) continue;
        if (!any) label("phases");
        any = true;
        auto [x, width] = edges({phase->begin, phase->end}, piece);
        std::string told =
            fmt::format("{}\n{}, {} to {}", phase->name, human_time(phase->end - phase->begin),
                        seconds(phase->begin), seconds(phase->end));
        if (!phase->note.empty()) told += "\n" + phase->note;
        svg_.rect(x, y_, width, BAR, odd ? "#d5deee" : "#e8edf6", told);
        auto letters = static_cast<std::size_t>(width / LETTER);
        if (letters > 2) svg_.text(x + 2, y_ + 11, shortened(phase->name, letters), 10);
      }
    }
    if (any) y_ += ROW;
  }

  // Several as one where there are more than can be told apart.
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
    bool warm_up = number < timeline_.course().iterations().warm_up;
    TimeSpan span{some.front().begin, some.back().end};
    std::string told = some.size() == 1
                           ? fmt::format("iteration {}: {}", number + 1, human_time(time))
                           : fmt::format("iterations {} to {}: {} each, on average", number + 1,
                                         number + some.size(), human_time(time / some.size()));
    told += fmt::format("\n{}, {} to {}", count_of(launches, "launch", "launches"),
                        seconds(span.begin), seconds(span.end));
    if (warm_up) told += "\nwarm-up";
    bool odd = number / some.size() % 2;
    for (const TimeScale::Piece& piece : scale_.pieces()) {
      if (span.end <= piece.begin || span.begin >= piece.end) continue;
      auto [x, width] = edges(span, piece);
      svg_.rect(x, y_, width, BAR, odd ? "#c9d8c6" : "#dfe9dc", told);
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
};

class Gantt {
 public:
  Gantt(const Timeline& timeline, const TimelineView& view, std::string_view title,
        std::uint64_t resolution)
      : timeline_(timeline),
        view_(view),
        resolution_(resolution),
        svg_(LEFT + WIDTH + RIGHT, 0, title) {
    svg_.text(10, 22, title, 16);
  }

  std::string draw() {
    draw_legend();
    if (!view_.whole.empty()) draw_overview();
    Section section(svg_, timeline_, view_.shown, resolution_, y_);
    for (const auto& process : timeline_.processes()) {
      if (process.threads.empty()) continue;
      section.begin(process);
      section.course_of(process, true);
      for (std::size_t index : process.threads)
        section.thread(timeline_.thread(index), Timeline::ROWS);
      for (std::size_t index : process.streams) section.stream(timeline_.stream(index));
    }
    for (const auto& [device, activity] : timeline_.gpus()) section.gpu(device, activity);
    svg_.set_height(section.finish());
    return svg_.take();
  }

 private:
  // The whole run: its phases, and what the thread did that has them.
  void draw_overview() {
    std::uint64_t pixel = time_of(view_.whole) / WIDTH;
    Section section(svg_, timeline_, view_.whole, std::max(resolution_, pixel), y_);
    const ThreadWork& busiest = *timeline_.course().thread();
    for (const auto& process : timeline_.processes()) {
      if (process.number != busiest.process) continue;
      section.begin(process);
      section.course_of(process, false);
      for (std::size_t index : process.threads)
        if (timeline_.thread(index).tid == busiest.tid) section.thread(timeline_.thread(index), 1);
    }
    y_ = section.finish();
    svg_.text(10, y_ + 4, "inference", 16);
    y_ += 10;
  }

  void draw_legend() {
    double x = LEFT;
    for (std::size_t i = 0; i <= CATEGORIES; i++) {
      if (static_cast<Category>(i) == Category::captured && !any_captured()) continue;
      const CategoryLook& look = look_of(static_cast<Category>(i));
      svg_.rect(x, 34, 12, 12, look.svg);
      svg_.text(x + 16, 44, look.name, 12);
      x += 30 + 7.5 * static_cast<double>(look.name.size());
    }
    std::string note =
        "A stream's row: the calls that put something on it, when they did; not when that ran.";
    if (resolution_)
      note += fmt::format(" Calls that lie within {} are one bar.", human_time(resolution_));
    svg_.text(LEFT, 64, note, 11);
    svg_.text(LEFT, 80, shortened(told_of_view(timeline_, view_, {}), LONGEST_NOTE), 11);
  }

  // Most programs capture nothing.
  bool any_captured() const {
    auto captured = [](const Bar& bar) {
      auto parts = bar.parts();
      return std::any_of(parts.begin(), parts.end(),
                         [](const Alike& part) { return part.category == Category::captured; });
    };
    for (std::size_t i = 0; i < timeline_.threads(); i++)
      for (const BarRow& row : timeline_.thread(i).bars)
        if (std::any_of(row.begin(), row.end(), captured)) return true;
    return false;
  }

  const Timeline& timeline_;
  const TimelineView& view_;
  std::uint64_t resolution_;
  Svg svg_;
  double y_ = TOP;
};

std::size_t bars_drawn(const Timeline& timeline, const TimelineView& view,
                       std::uint64_t resolution) {
  std::size_t count = 0;
  auto add = [&](const BarRow& row) {
    for (const TimeSpan& span : view.shown)
      each_group(row, span.begin, span.end, resolution, [&](auto) { count++; });
  };
  for (std::size_t i = 0; i < timeline.threads(); i++)
    for (const BarRow& row : timeline.thread(i).bars) add(row);
  for (std::size_t i = 0; i < timeline.streams(); i++) add(timeline.stream(i).bars);
  return count;
}

}  // namespace

// Calls become one bar, the more of them the less room there is.
std::string timeline_svg(const Timeline& timeline, std::string_view title) {
  TimelineView view = view_of(timeline);
  std::uint64_t finest = std::max<std::uint64_t>(time_of(view.shown) / WIDTH / 8, 1);
  // A row of bars can become no less than one for each time that is shown.
  std::uint64_t resolution = timeline.resolution(), coarsest = timeline.to() - timeline.from();
  auto coarser = [&] { resolution = std::max(finest, resolution + resolution / 4); };
  while (resolution < coarsest && bars_drawn(timeline, view, resolution) * LEAST_BYTES > MOST_BYTES)
    coarser();
  for (;; coarser()) {
    std::string svg = Gantt(timeline, view, title, resolution).draw();
    if (svg.size() <= MOST_BYTES || resolution >= coarsest) return svg;
  }
}

}  // namespace cudabpf::analyze
