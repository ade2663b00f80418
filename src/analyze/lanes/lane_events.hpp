// What a line puts on a lane: what it is called and about, and how it ended.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyze/lanes/call_category.hpp"
#include "analyze/short_names.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct LaneEvent {
  Name name, what;  // what: the kernel, the graph, the control command or the class; the domain
  Name error;
  Name ending;  // how it ended, where that is not known: "unfinished", …
  Category category = Category::other;
  bool failed = false, launch = false, ioctl = false, timed = false;
  bool is_kernel = false;  // `what` is the name of a kernel

  // A bit each, as web/src/data/timeline.ts has them.
  unsigned flags() const {
    return unsigned{failed} | unsigned{launch} << 1U | unsigned{ioctl} << 2U |
           unsigned{timed} << 3U | unsigned{is_kernel} << 4U;
  }
  auto as_tuple() const {
    return std::tuple(name.id, what.id, error.id, ending.id, category, flags());
  }
  bool operator==(const LaneEvent& other) const { return as_tuple() == other.as_tuple(); }
};

class LaneEvents {
 public:
  explicit LaneEvents(Names& names);

  // Learns the names of kernels: see ShortNames.
  void learn(const Line& line) { short_names_.line(line); }
  void settle() { short_names_.settle(); }

  // The line is a call, an operation on the driver's devices, what a GPU did, or a range.
  LaneEvent of(const Line& line);
  // "graph 3". Null: there are more than have names.
  Name name_of_graph(std::uint64_t number);
  // A kernel or a graph.
  std::string short_name(Name what) const;
  const Names& names() const { return names_; }

 private:
  static constexpr std::size_t MAX_GRAPHS = 1 << 12;

  Name launched_by(const Line& call);
  Name about(const Line& line);

  Names& names_;
  CallCategories categories_;
  ShortNames short_names_;
  Name ioctl_, nv_ok_;
  // "graph 3, 20 kernels": what launches of graphs are called; and all such names' numbers.
  std::unordered_map<const LaunchedGraph*, Name> launched_graphs_;
  HashMap<std::uint64_t, Name> graphs_;
  std::unordered_set<std::uint32_t> graph_names_;
};

}  // namespace cudabpf::analyze
