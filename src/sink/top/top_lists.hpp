// What `cudabpf top` shows instead of processes: its keys, and its columns to choose from. Pure.
#pragma once

#include "sink/top/top_layout.hpp"

namespace cudabpf {

void draw_help(ScreenFrame& frame, Rows rows);
void draw_columns(ScreenFrame& frame, const TopView& view, Rows rows);

}  // namespace cudabpf
