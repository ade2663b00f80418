// The timeline as a picture: a bar for each call, and for what GPUs did.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyze/timeline/timeline_section.hpp"
#include "util/console/terminal.hpp"
#include "util/page/svg.hpp"

namespace cudabpf::analyze {

namespace {

constexpr double LEFT = TimelineSection::LEFT, TOP = 96;
constexpr std::size_t WIDTH = TimelineSection::WIDTH;
constexpr std::size_t MAX_BYTES = 1'000'000, LEAST_BYTES = 120;  // of a picture; of a bar
constexpr std::size_t MAX_NOTE = 230;                            // above all; letters

class Gantt {
 public:
  Gantt(const Timeline& timeline, const TimelineView& view, std::string_view title,
        std::uint64_t resolution)
      : timeline_(timeline),
        view_(view),
        resolution_(resolution),
        svg_(LEFT + WIDTH + TimelineSection::RIGHT, 0, title) {
    svg_.text(10, 22, title, 16);
  }

  std::string draw() {
    draw_legend();
    if (!view_.whole.empty()) draw_overview();
    TimelineSection section(svg_, timeline_, view_.shown, resolution_, y_);
    for (const auto* of : timeline_.by_host()) {
      const Timeline::Process& process = *of;
      if (process.empty()) continue;
      section.begin(process);
      section.execution_of(process, true);
      for (std::size_t index : process.threads) {
        section.ranges(timeline_.thread(index));
        section.thread(timeline_.thread(index), LANE_ROWS);
      }
      section.gpu_windows(process);
      for (std::size_t index : process.queues) section.queue(index);
      section.arrows();
      if (!process.queues.empty()) continue;
      for (std::size_t index : process.streams) section.stream(timeline_.stream(index));
    }
    for (const auto& [device, activity] : timeline_.gpus()) section.gpu(device, activity);
    svg_.set_height(section.finish());
    return svg_.take();
  }

 private:
  // The whole run: its phases, and what their thread did.
  void draw_overview() {
    std::uint64_t pixel = time_of(view_.whole) / WIDTH;
    TimelineSection section(svg_, timeline_, view_.whole, std::max(resolution_, pixel), y_);
    const ThreadWork& busiest = *timeline_.execution().thread();
    for (const auto& process : timeline_.processes()) {
      if (process.number != busiest.process) continue;
      section.begin(process);
      section.execution_of(process, false);
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
      auto category = static_cast<Category>(i);
      // Most programs have neither.
      bool is_rare = category == Category::captured || category == Category::collective;
      if (is_rare && !is_drawn(category)) continue;
      const CategoryLook& look = look_of(category);
      svg_.rect(x, 34, 12, 12, look.svg);
      svg_.text(x + 16, 44, look.name, 12);
      x += 30 + 7.5 * static_cast<double>(look.name.size());
    }
    std::string note = timeline_.gpu_queues() ? "GPU rows show what ran when, as measured. "
                                                "Several as one bar are as high as their share "
                                                "of its time."
                                              : "Stream rows show when work was submitted, not "
                                                "when it ran.";
    if (resolution_)
      note += fmt::format(" {} that lie within {} are one bar.",
                          timeline_.gpu_queues() ? "Those" : "Calls", human_time(resolution_));
    svg_.text(LEFT, 64, note, 11);
    svg_.text(LEFT, 80, shortened(note_of_view(timeline_, view_, {}), MAX_NOTE), 11);
  }

  bool is_drawn(Category category) const {
    auto has = [&](const BarRow& row) {
      return std::any_of(row.begin(), row.end(), [&](const Bar& bar) {
        auto parts = bar.parts();
        return std::any_of(parts.begin(), parts.end(),
                           [&](const Alike& part) { return part.category == category; });
      });
    };
    for (std::size_t i = 0; i < timeline_.threads(); i++)
      for (const BarRow& row : timeline_.thread(i).bars)
        if (has(row)) return true;
    for (std::size_t i = 0; i < timeline_.gpu_queues(); i++)
      if (has(timeline_.gpu_queue(i).bars)) return true;
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
  for (std::size_t i = 0; i < timeline.threads(); i++) {
    for (const BarRow& row : timeline.thread(i).bars) add(row);
    for (const BarRow& row : timeline.thread(i).ranges) add(row);
  }
  for (std::size_t i = 0; i < timeline.streams(); i++) add(timeline.stream(i).bars);
  for (std::size_t i = 0; i < timeline.gpu_queues(); i++) add(timeline.gpu_queue(i).bars);
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
  while (resolution < coarsest && bars_drawn(timeline, view, resolution) * LEAST_BYTES > MAX_BYTES)
    coarser();
  for (;; coarser()) {
    std::string svg = Gantt(timeline, view, title, resolution).draw();
    if (svg.size() <= MAX_BYTES || resolution >= coarsest) return svg;
  }
}

}  // namespace cudabpf::analyze
