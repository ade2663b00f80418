// The page of `cudabpf top`: a pure function of what happened, of the user's view, and of the
// screen's size.
#pragma once

#include <cstddef>

#include "sink/top/top_layout.hpp"

namespace cudabpf {

// On a smaller screen, a sentence says so.
inline constexpr ScreenFrame::Size LEAST_TOP = {10, 40};

ScreenFrame draw_top(const TopScene& scene, const TopView& view, ScreenFrame::Size size, bool utf8);
// How many processes it shows: PgDn moves by this many.
std::size_t top_page_rows(const TopScene& scene, const TopView& view, ScreenFrame::Size size);

}  // namespace cudabpf
