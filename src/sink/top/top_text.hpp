// An interval of `cudabpf top` as text.
#pragma once

#include <bitset>
#include <string>

#include "sink/top/top_model.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

// Interval by interval. Advice against a loss, and names of hidden columns, are given once.
class TopText {
 public:
  std::string text(const TopInterval& interval, const Terminal& terminal);

 private:
  std::bitset<LOSS_COUNT> advised_;
  bool said_left_out_ = false;
};
// What is left to report after showing intervals on the screen: losses, and whether the counts of
// the last interval balance.
std::string top_end_text(const TopInterval& last, const TopLosses& lost, const Terminal& terminal);

}  // namespace cudabpf
