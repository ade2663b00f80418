// What a call is about, according to its type, and whether it waits for the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/read/line.hpp"

namespace cudabpf::analyze {

enum class Category : std::uint8_t {
  init,
  context,
  module,
  memory,
  transfer,
  kernel,
  graph,
  collective,  // between GPUs
  sync,
  waiting_copy,  // to the host, returning when it is done
  captured,      // into a graph, instead of being done
  other,
  unfinished,  // it never returned
  driver,      // not a call, but an operation on the driver's devices
  range,       // the program's own
};
constexpr std::size_t CATEGORIES = 13;  // those of calls

// How a category is drawn. Waiting is lighter than work.
struct CategoryLook {
  std::string_view name;
  std::string_view full, part;  // a column of which such calls took half or more, or less
  std::string_view escape;      // the terminal's code for the colour
  std::string_view svg;
  bool waits = false;
};
const CategoryLook& look_of(Category category);

class CallCategories {
 public:
  explicit CallCategories(Names& names);
  // A call's or an operation's category. What a GPU did has the category of the calls that issue
  // it.
  Category of(const Line& line) const;

 private:
  std::vector<Category> by_type_;  // by the number of its name
};

Category category_of_work(const Line& work);

}  // namespace cudabpf::analyze
