// An interval of `cudabpf top` as text.
#pragma once

#include <bitset>
#include <string>

#include "sink/top/top_model.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

// Interval by interval. What helps against a loss, and which columns are hidden, it says once.
class TopText {
 public:
  std::string text(const TopInterval& interval, const Terminal& terminal);

 private:
  std::bitset<LOSS_COUNT> advised_;
  bool said_left_out_ = false;
};
// What remains to be said when it was shown on the screen: what was lost, and whether the books of
// the last interval balance.
std::string top_end_text(const TopInterval& last, const TopLosses& lost, const Terminal& terminal);

}  // namespace cudabpf
