// The processes on the page of `cudabpf top`, and the parts of the selected one. Pure.
#pragma once

#include "sink/top/top_layout.hpp"

namespace cudabpf {

inline constexpr Style TITLE_STYLE = {Colour::cyan, false, true};

void draw_processes(ScreenFrame& frame, const TopScene& scene, const TopView& view,
                    const TopLines& lines, Rows rows);
// Its functions, and its kernels if they are known.
void draw_parts(ScreenFrame& frame, const TopScene& scene, const TopLines& lines, Rows rows);

}  // namespace cudabpf
