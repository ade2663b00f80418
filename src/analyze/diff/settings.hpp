// What was traced, and with which options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/diff/measure.hpp"
#include "trace/header.hpp"

namespace cudabpf::analyze {

// What a trace's header says, one text each, in the order of a table.
using Settings = std::vector<std::string>;
Settings settings_in(const TraceHeader& header);

struct Setting {
  std::string_view what;
  std::string a, b;         // where the traces of a side differ, all that they have
  std::string_view so;      // what a difference means for the comparison; may be empty
  Needs incomparable = {};  // measures that need one of these cannot be compared
};
// The settings in which not all traces of both sides are alike.
std::vector<Setting> settings_unlike(const std::vector<const Settings*>& a,
                                     const std::vector<const Settings*>& b);

}  // namespace cudabpf::analyze
