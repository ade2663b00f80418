// What matrix products cost, by what they multiply. A kernel's launch names the call that made
// it (`within`), which is the product, or a part of it. Captured products run at each launch of
// their graph; there a kernel belongs to the product that launched the kernel of that name and grid
// when the graph was captured, in order of the graph's nodes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/calls_by_id.hpp"
#include "analyze/derived/classes_by_name.hpp"
#include "analyze/products/counted.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class MatrixProducts : public Analysis {
 public:
  struct Shape {
    std::uint64_t m = 0, n = 0, k = 0, batch = 1;
    std::string trans, types, compute, epilogue;     // as the trace spells them
    auto operator<=>(const Shape&) const = default;  // NOLINT(modernize-use-nullptr): see ThreadId

    double flop() const;   // of one run
    double bytes() const;  // that one run reads and writes at least; 0: not known
    // What tensor cores do of it, by how many FLOP of half precision take as long; 0: it may be
    // computed without them.
    double half_flop() const;
    std::string elements() const { return types.substr(0, types.find(',')); }
  };
  struct Row {
    Shape shape;
    std::uint64_t count = 0, in_graphs = 0;  // runs
    std::uint64_t timed = 0, gpu = 0;        // those whose kernels are known, and their ns
    std::set<std::string> kernels;           // the first few
  };
  // What is in no row, or in doubt.
  struct Books {
    std::uint64_t failed = 0;
    std::map<std::string, std::uint64_t> unknown;     // products without a shape, by the reason
    std::uint64_t without_kernel = 0;                 // runs, where GPUs' times were recorded
    std::uint64_t unclaimed = 0, unclaimed_ns = 0;    // kernels that multiply, of no known product
    std::uint64_t ambiguous = 0, ambiguous_ns = 0;    // those of graphs, of several products
    std::uint64_t left_out = 0;                       // beyond the bounds
    std::uint64_t tiles_agree = 0, tiles_differ = 0;  // kernels whose names say their tiles
  };

  explicit MatrixProducts(const Names& names) : names_(names), classes_(names) {}

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  const std::vector<Row>& rows() const { return sorted_; }  // those that took longest first
  const Books& books() const { return books_; }
  // Without products in graphs, of which it is not followed when they ran.
  const CountedActivity& counted() const { return counted_; }
  bool measured() const { return measured_; }
  bool were_recorded() const { return were_recorded_; }
  const std::string& gpu() const { return gpu_; }  // the one kind that there is; empty: several

 private:
  static constexpr std::size_t MAX_ROWS = 1 << 14, MAX_OPEN = 1 << 16, MAX_CAPTURED = 1 << 17,
                               MAX_NODES = 1 << 20, MAX_KERNELS = 8;
  static constexpr std::uint32_t NO_SHAPE = 0;  // rows are numbered from 1

  struct Kernel {
    Name name;
    Dimensions grid{};
    auto key() const { return std::tuple(name.id, grid); }
  };
  struct Known {
    static constexpr std::size_t MAX = std::size_t{1} << 20;
    std::uint64_t id = 0, parent = 0;  // parent: of which it is a part
    std::uint32_t row = NO_SHAPE;
    bool timed = false;
  };
  struct Captured {
    std::uint32_t row = NO_SHAPE;
    std::vector<Kernel> kernels;
  };
  struct Ran {
    std::uint64_t count = 0, ns = 0;
  };
  // A graph's number, and a kernel in it.
  using InGraph = std::tuple<std::uint64_t, std::uint32_t, Dimensions>;

  void call(const Line& line);
  void product(const Line& line);
  void launch(const Line& line);
  void launched_graph(const Line& line);
  void operation(const Line& line);
  void operation_of_graph(const Line& line);
  std::uint32_t row_of(const Line& line);
  void add_kernels(std::uint32_t row, const Shape& shape, const std::vector<Kernel>& kernels);
  void check_tiles(const Shape& shape, const Kernel& kernel);
  void unclaimed(Name kernel, const Ran& ran);
  void settle_graph(std::uint64_t number, const LaunchedGraph& graph);
  void settle_nodes(const std::vector<std::pair<std::uint32_t, bool>>& expected,
                    const std::map<std::uint32_t, Ran>& nodes);

  const Names& names_;
  ClassesByName classes_;
  std::map<Shape, std::uint32_t> by_shape_;
  std::vector<Row> rows_ = {Row()};
  std::vector<Row> sorted_;
  Books books_;
  CallsById<Known> known_;
  HashMap<std::uint64_t, std::vector<Kernel>> inside_;  // of calls that have not ended, by id
  HashMap<std::uint64_t, Captured> captured_;           // by the call's id
  std::map<std::uint64_t, const LaunchedGraph*> graphs_;
  std::map<InGraph, std::map<std::uint32_t, Ran>> nodes_;  // by their number
  std::size_t nodes_kept_ = 0;
  bool measured_ = false, were_recorded_ = false;
  std::string gpu_;
  CountedActivity counted_;
};

Json products_json(const MatrixProducts& products);
void add_products(Page& page, const MatrixProducts& products, std::size_t at_most);

}  // namespace cudabpf::analyze
