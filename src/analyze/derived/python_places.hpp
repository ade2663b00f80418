// Where in its Python a program made a call. The user's line is the innermost that is in no package
// and not in Python's own library; if there is none, the innermost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "analyze/derived/range_places.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct PythonPlace {
  Name line;  // the user's: "/home/me/train.py:12 step"
  // The same, for answers that keep ranges apart: equal lines are one place.
  const RangePlace* place = nullptr;
  // The innermost first, written alike; empty: there was no room for them.
  std::vector<Name> frames;
  bool cut = false;  // there are more around them
};

// Whether a file is of a package or of Python's own library.
bool is_of_library(std::string_view file);

class PythonPlaces {
 public:
  explicit PythonPlaces(Names& names) : names_(names), nowhere_(place_for("(no line)")) {}

  // Notes what stacks there are, and fills in where a call was made.
  void follow(Line& line);
  // Where the line is known to be; else a place that says that it is not.
  const RangePlace* place_of(const Line& line) const {
    return line.python ? line.python->place : &nowhere_;
  }

 private:
  // All stacks have their user's line, and so many all frames.
  static constexpr std::size_t MAX_STACKS = 1 << 19, MAX_FRAMES = 1 << 21;

  void describe(const Line& line);
  const RangePlace& place_for(std::string_view line);

  Names& names_;
  std::deque<RangePlace> places_;
  HashMap<std::uint32_t, const RangePlace*> by_line_;  // by the line's name
  const RangePlace& nowhere_;
  std::deque<PythonPlace> all_;
  std::size_t frames_ = 0;
  HashMap<std::uint64_t, const PythonPlace*> by_number_;  // by the trace's own numbers
};

}  // namespace cudabpf::analyze
