// Which category a line of a timeline is drawn in.
#pragma once

#include <vector>

#include "analyze/timeline/timeline_bars.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

class CallCategories {
 public:
  explicit CallCategories(Names& names);
  Category of(const Line& call) const;

 private:
  std::vector<Category> by_type_;  // by the number of its name
};

}  // namespace cudabpf::analyze
