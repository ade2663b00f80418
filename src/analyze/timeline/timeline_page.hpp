// What the timeline's pages have in common.
#pragma once

#include <string>
#include <string_view>

#include "analyze/timeline/timeline.hpp"
#include "analyze/timeline/timeline_view.hpp"
#include "util/page/page.hpp"

namespace cudabpf::analyze {

// Characters with their colours; a colour is switched on once for a run of characters.
class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}
  void put(std::string_view text, std::string_view escape);
  std::string take();

 private:
  bool color_;
  std::string text_, last_;
};

// A line for each call, while there are few.
void add_pieces(Page& page, const Timeline& timeline);

}  // namespace cudabpf::analyze
