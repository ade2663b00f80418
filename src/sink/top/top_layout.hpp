// Which rows of a screen `cudabpf top` uses for what. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sink/top/top_history.hpp"
#include "sink/top/top_model.hpp"
#include "sink/top/top_view.hpp"
#include "util/console/frame.hpp"

namespace cudabpf {

// What is to be drawn.
struct TopScene {
  const TopInterval& interval;
  const TopHistory& history;  // up to that interval
  TopLosses lost;             // up to now
  std::string message;        // the last one; empty: none
};

// A line of the table: a process, or the memory that it has on a device.
struct TopLine {
  const TopProcess* process = nullptr;
  std::optional<std::uint32_t> device;
};
struct TopLines {
  std::vector<TopLine> lines;
  std::size_t selected = 0;  // the line of the selected process
};
TopLines top_lines(const TopInterval& interval, const TopView& view);

struct Rows {
  std::size_t at = 0, count = 0;
};
// From the head, which is row 0, to the keys, which are in the last row.
struct TopLayout {
  Rows graphs, gpus;
  Rows table;  // with its title
  Rows parts;  // functions and kernels
  Rows errors, message;
};
TopLayout top_layout(const TopScene& scene, const TopView& view, std::size_t lines,
                     ScreenFrame::Size size);
// GPUs beside each other in a row.
std::size_t gpus_in_row(std::size_t gpus, std::size_t columns);

}  // namespace cudabpf
