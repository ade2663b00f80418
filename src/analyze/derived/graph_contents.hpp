// The contents of the graphs that a trace's calls launch: a trace has them once, before the first
// launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cudabpf/event.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

// Nodes of a graph that do the same.
struct NodesAlike {
  NodeWork what = NodeWork::other;
  Name kernel;               // none: its name is not known
  std::uint64_t handle = 0;  // if it has no name
  Dimensions grid{}, block{};
  std::uint32_t shared = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  bool conditional = false;  // they run any number of times
};

// It lives as long as the reader of the trace.
struct LaunchedGraph {
  std::uint64_t number = 0;
  // What a launch does once.
  std::uint64_t nodes = 0, kernels = 0, bytes_copied = 0;
  std::uint64_t unlisted_kernels = 0;  // those of them that are not in the list
  std::vector<NodesAlike> list;
  // The calls of collectives that were captured into it, in their order: a launch runs each once.
  std::vector<std::uint64_t> collectives;
  std::vector<std::uint64_t> products;  // the same for matrix products
};

class GraphContents {
 public:
  explicit GraphContents(Names& names) : names_(names) {}

  // Fills in the contents of the graph that the line launches, or is about.
  void follow(Line& line);
  // Null: it is not known.
  const LaunchedGraph* content_of(std::uint64_t number);

 private:
  // cudabpf lists at most MAX_LISTED nodes of a graph; no real trace has as many graphs, or as many
  // nodes in them.
  static constexpr std::size_t MAX_LISTED = 1000, MAX_GRAPHS = 1 << 16, MAX_NODES = 1 << 19;
  static constexpr std::size_t MAX_CALLS = 1 << 12;  // of a graph, of each kind

  void add(const Line& line);

  Names& names_;
  HashMap<std::uint64_t, std::unique_ptr<const LaunchedGraph>> graphs_;  // by number
  std::size_t nodes_ = 0;  // in the lists of all, with collectives and products
  const LaunchedGraph* last_ = nullptr;
};

}  // namespace cudabpf::analyze
