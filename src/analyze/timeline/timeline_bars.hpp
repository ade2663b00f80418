// The bars of a Gantt chart: as many as a picture can have. If there are more, neighbours that
// would be drawn as one anyway are merged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/trace/names.hpp"

namespace cudabpf::analyze {

// What a call is about, according to its type.
enum class Category : std::uint8_t {
  init,
  context,
  module,
  memory,
  transfer,
  kernel,
  graph,
  sync,
  other,
  unfinished,  // it never returned
  driver,      // not a call, but an operation on the driver's devices
};
constexpr std::size_t CATEGORIES = 10;  // those of calls

struct CategoryLook {
  std::string_view name;
  char letter;
  std::string_view escape;  // the terminal's code for the colour
  std::string_view svg;
};
const CategoryLook& look_of(Category category);

class TimelineBars {
 public:
  static constexpr std::size_t MOST = 20'000;

  struct Bar {
    std::uint64_t begin = 0, end = 0;  // ns
    std::uint64_t count = 1;           // of calls
    std::uint64_t busy = 0;            // ns in them
    Name name, what;                   // none: several
    Category category = Category::other;
  };
  enum Row : std::uint8_t { calls, nested, driver };
  static constexpr std::size_t ROWS = 3;
  using Lane = std::array<std::vector<Bar>, ROWS>;

  // Only bars in one row of a lane are merged; the limit counts all bars.
  void add(Lane& lane, Row row, const Bar& bar);
  bool too_many() const { return count_ > 2 * MOST; }
  bool more_than_drawn() const { return count_ > MOST; }
  // Merges bars that are less than the resolution apart, if they are alike or shorter than that.
  template <typename Lanes>
  void merge(Lanes& lanes) {
    resolution_ = resolution_ ? 2 * resolution_ : 16;
    count_ = 0;
    for (auto& lane : lanes)
      for (auto& row : lane.bars) count_ += merge_row(row);
  }
  std::uint64_t merged_within() const { return resolution_; }  // ns; 0: none was merged

 private:
  std::size_t merge_row(std::vector<Bar>& row) const;

  std::size_t count_ = 0;
  std::uint64_t resolution_ = 0;
};

}  // namespace cudabpf::analyze
