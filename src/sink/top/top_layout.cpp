#include "sink/top/top_layout.hpp"

#include <algorithm>

namespace cudabpf {

TopLines top_lines(const TopInterval& interval, const TopView& view) {
  auto shown = view.processes(interval);
  std::size_t selected = view.selected(shown);
  TopLines lines;
  for (std::size_t i = 0; i < shown.size(); i++) {
    if (i == selected) lines.selected = lines.lines.size();
    lines.lines.push_back({shown[i], {}});
    if (!view.is_expanded(shown[i]->pid)) continue;
    for (const auto& [device, memory] : shown[i]->devices)
      lines.lines.push_back({shown[i], device});
  }
  return lines;
}

std::size_t gpus_in_row(std::size_t gpus, std::size_t columns) {
  constexpr std::size_t MANY = 3, ROOM_FOR_TWO = 116;
  return gpus >= MANY && columns >= ROOM_FOR_TWO ? 2 : 1;
}

TopLayout top_layout(const TopScene& scene, const TopView& view, std::size_t lines,
                     ScreenFrame::Size size) {
  constexpr std::size_t MEDIUM = 16, TALL = 32;  // rows
  constexpr std::size_t LEAST_TABLE = 4, LEAST_PARTS = 4;
  std::size_t rows = size.rows, bottom = rows - 1;
  bool is_medium = rows >= MEDIUM, is_tall = rows >= TALL;
  TopLayout layout;
  std::size_t at = 1;
  auto from_top = [&](std::size_t count) {
    Rows taken{at, count};
    at += count;
    return taken;
  };
  auto from_bottom = [&](std::size_t count) { return Rows{bottom -= count, count}; };
  std::size_t gpus = scene.interval.gpus.gpus().size(), in_row = gpus_in_row(gpus, size.columns),
              wanted = (gpus + in_row - 1) / in_row;
  if (view.all_gpus()) {
    layout.graphs = from_top(0);
    layout.gpus = from_top(std::min(wanted, rows - 1 - LEAST_TABLE - at));
  } else {
    layout.graphs = from_top(is_tall ? 5 : is_medium ? 3 : 0);
    layout.gpus = from_top(is_medium ? std::min(wanted, rows / 7) : 0);
  }
  layout.message = from_bottom(is_medium && !scene.message.empty() ? 1 : 0);
  std::size_t most_errors = is_tall ? TopModel::MAX_ERRORS : is_medium ? 2 : 1;
  layout.errors = from_bottom(std::min(scene.interval.errors.size(), most_errors));
  std::size_t left = bottom - at;
  std::size_t parts = left >= LEAST_TABLE + LEAST_PARTS ? std::max(LEAST_PARTS, left / 3) : 0;
  // The rows that the processes do not need.
  if (parts) parts = std::max(parts, left - std::clamp(lines + 1, LEAST_TABLE, left - parts));
  layout.table = from_top(left - parts);
  layout.parts = from_top(parts);
  return layout;
}

}  // namespace cudabpf
