#include <fmt/format.h>

#include <algorithm>

#include "analyze/memory/memory.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"
#include "util/page/svg.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t PANELS = 8, POINTS = 1000;
constexpr double LEFT = 90, WIDTH = POINTS, RIGHT = 30, TOP = 70, HEIGHT = 180, GAP = 70;
// Easy to distinguish in colour, and different greys in print.
constexpr std::array<std::string_view, MEMORY_KINDS> COLORS = {"#1f5fa8", "#f0a030", "#7fbf6f",
                                                               "#b0b0b0", "#8d4fa0"};

// Its line lies on the memory that the blocks are part of.
constexpr std::string_view BLOCKS_NAME = "PyTorch's blocks", BLOCKS_COLOR = "#ffffff";

struct Panel {
  const Memory::Holder* holder;
  Memory::Side side;
  std::string name;
};

std::vector<Panel> panels_of(const Memory& memory) {
  std::vector<Panel> panels;
  auto add = [&](const Memory::Holder& holder, const std::string& name) {
    for (auto [side, what] :
         {std::pair{Memory::Side::gpu, "GPU memory"}, {Memory::Side::host, "pinned host memory"}})
      if (holder.peaks[static_cast<std::size_t>(side)].bytes() && panels.size() < PANELS)
        panels.push_back({&holder, side, fmt::format("{}: {}", name, what)});
  };
  if (memory.holders().size() > 1) add(memory.all(), "all processes");
  for (const auto& holder : memory.holders())
    add(holder, (holder.pid ? "process " : "") + name_of(memory, holder));
  return panels;
}

double x_of(const Memory& memory, std::uint64_t ns) {
  std::uint64_t since = ns - std::min(ns, memory.begin());
  return LEFT + WIDTH * share(since, memory.end() - memory.begin()) / 100;
}

void draw_axes(Svg& svg, const Memory& memory, double top, std::uint64_t most) {
  double bottom = top + HEIGHT;
  for (std::uint64_t mark : byte_marks(most, 5)) {
    double y = bottom - HEIGHT * share(mark, most) / 100;
    svg.line(LEFT, y, LEFT + WIDTH, y, "#dddddd");
    svg.text(LEFT - 6, y + 4, mark ? human_bytes(mark) : "0", 11, Svg::Anchor::end);
  }
  std::uint64_t begin = memory.begin(), end = memory.end();
  auto marks = time_marks(begin, end, 10);
  std::uint64_t step = marks.size() > 1 ? marks[1] - marks[0] : end - begin;
  for (std::uint64_t mark : marks) {
    double x = x_of(memory, mark);
    svg.line(x, bottom, x, bottom + 5, "#222222");
    std::string time = mark_time(mark, step);
    svg.text(x, bottom + 18, time, 11, svg.fitting(x, time, 11));
  }
}

// Stacks the kinds, each drawn in steps, since memory comes and goes at once.
void draw_areas(Svg& svg, const std::vector<Memory::Level>& levels, const Panel& panel, double top,
                std::uint64_t most) {
  std::vector<std::uint64_t> below(levels.size());
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
    if (Memory::side_of(static_cast<MemoryKind>(kind)) != panel.side) continue;
    if (!panel.holder->kinds[kind].peak) continue;
    std::vector<Svg::Point> up, back;
    auto y_of = [&](std::uint64_t bytes) {
      return top + HEIGHT - HEIGHT * share(bytes, most) / 100;
    };
    for (std::size_t i = 0; i < levels.size(); i++) {
      std::uint64_t above = below[i] + levels[i].most.kinds[kind];
      double x = LEFT + static_cast<double>(i);
      for (double at : {x, x + 1}) {
        up.emplace_back(at, y_of(above));
        back.emplace_back(at, y_of(below[i]));
      }
      below[i] = above;
    }
    up.insert(up.end(), back.rbegin(), back.rend());
    svg.polygon(up, COLORS[kind],
                fmt::format("{}: at most {}", MEMORY_KIND_NAMES[kind],
                            human_bytes(panel.holder->kinds[kind].peak)));
  }
}

// What tensors have of it: the rest is cached, in pieces that are too small, or rounded up.
void draw_blocks(Svg& svg, const std::vector<Memory::Level>& levels, const Panel& panel, double top,
                 std::uint64_t most) {
  if (panel.side != Memory::Side::gpu || !panel.holder->most_blocks) return;
  std::vector<Svg::Point> steps;
  for (std::size_t i = 0; i < levels.size(); i++) {
    double y = top + HEIGHT - HEIGHT * share(std::min(levels[i].most.blocks, most), most) / 100;
    double x = LEFT + static_cast<double>(i);
    steps.insert(steps.end(), {{x, y}, {x + 1, y}});
  }
  svg.polyline(steps, BLOCKS_COLOR,
               fmt::format("{}: at most {}", BLOCKS_NAME, human_bytes(panel.holder->most_blocks)));
}

void draw_panel(Svg& svg, const Memory& memory, const Panel& panel, double top) {
  const MemoryPeak& peak = panel.holder->peaks[static_cast<std::size_t>(panel.side)];
  svg.text(LEFT, top - 10, panel.name, 13);
  draw_axes(svg, memory, top, peak.bytes());
  auto levels = memory.columns(panel.holder->curve, POINTS);
  draw_areas(svg, levels, panel, top, peak.bytes());
  draw_blocks(svg, levels, panel, top, peak.bytes());
  svg.line(LEFT, top, LEFT, top + HEIGHT, "#222222");
  svg.line(LEFT, top + HEIGHT, LEFT + WIDTH, top + HEIGHT, "#222222");
  double x = x_of(memory, peak.ts());
  svg.circle(x, top, 4, "#c00000");
  bool right_half = x > LEFT + WIDTH / 2;
  svg.text(x + (right_half ? -8 : 8), top - 6,
           fmt::format("peak: {} at {}", human_bytes(peak.bytes()), human_time(peak.ts())), 12,
           right_half ? Svg::Anchor::end : Svg::Anchor::start, "#c00000");
}

void draw_legend(Svg& svg, const Memory& memory) {
  double x = LEFT;
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
    if (!memory.all().kinds[kind].any()) continue;
    svg.rect(x, 34, 12, 12, COLORS[kind]);
    svg.text(x + 17, 44, MEMORY_KIND_NAMES[kind]);
    x += 100;
  }
  if (!memory.all().most_blocks) return;
  svg.rect(x, 34, 12, 12, COLORS[static_cast<std::size_t>(MemoryKind::device)]);
  svg.rect(x, 39, 12, 2, BLOCKS_COLOR);
  svg.text(x + 17, 44, BLOCKS_NAME);
}

}  // namespace

std::string memory_svg(const Memory& memory, std::string_view title) {
  auto panels = panels_of(memory);
  double height =
      TOP + static_cast<double>(std::max<std::size_t>(panels.size(), 1)) * (HEIGHT + GAP);
  Svg svg(LEFT + WIDTH + RIGHT, height, title);
  svg.text(LEFT, 22, title, 16);
  draw_legend(svg, memory);
  if (panels.empty()) svg.text(LEFT, TOP, "No allocation in this trace returned memory.");
  for (std::size_t i = 0; i < panels.size(); i++)
    draw_panel(svg, memory, panels[i], TOP + 10 + static_cast<double>(i) * (HEIGHT + GAP));
  return svg.take();
}

}  // namespace cudabpf::analyze
