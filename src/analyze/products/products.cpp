#include "analyze/products/products.hpp"

#include <algorithm>
#include <charconv>

#include "analyze/derived/graph_contents.hpp"
#include "analyze/derived/issuing_calls.hpp"
#include "analyze/work.hpp"
#include "cudabpf/matrix_types.hpp"
#include "trace/header.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

// How many bits an element of each matrix has, as "float16,float16,float32" says.
std::vector<double> bits_of(std::string_view types) {
  std::vector<double> bits;
  while (!types.empty()) {
    std::size_t comma = std::min(types.find(','), types.size());
    bits.push_back(matrix_type(types.substr(0, comma)).bits);
    types.remove_prefix(std::min(comma + 1, types.size()));
  }
  return bits;
}

double as_double(std::uint64_t number) { return static_cast<double>(number); }

// The tiles of a kernel of cuBLAS, as in "nvjet_sm90_hsh_128x256_64x4"; 0: its name says none.
std::pair<std::uint64_t, std::uint64_t> tiles_in(std::string_view name) {
  if (!name.starts_with("nvjet")) return {};
  for (std::size_t x = name.find('x'); x != name.npos; x = name.find('x', x + 1)) {
    std::size_t begin = x;
    while (begin && name[begin - 1] >= '0' && name[begin - 1] <= '9') begin--;
    std::uint64_t rows = 0, columns = 0;
    std::from_chars(name.data() + begin, name.data() + x, rows);
    std::from_chars(name.data() + x + 1, name.data() + name.size(), columns);
    if (rows && columns) return {rows, columns};
  }
  return {};
}

}  // namespace

double MatrixProducts::Shape::flop() const {
  double of_element = matrix_type(elements()).is_complex ? 8 : 2;
  return of_element * as_double(m) * as_double(n) * as_double(k) * as_double(batch);
}

double MatrixProducts::Shape::bytes() const {
  std::vector<double> bits = bits_of(types);
  if (bits.size() != 3 || std::ranges::find(bits, 0) != bits.end()) return 0;
  double all = as_double(m) * as_double(k) * bits[0] + as_double(k) * as_double(n) * bits[1] +
               as_double(m) * as_double(n) * bits[2];
  return all * as_double(batch) / 8;
}

// Small products, and pedantic ones, may be computed by ordinary cores.
double MatrixProducts::Shape::half_flop() const {
  constexpr std::uint64_t SMALL = 64;
  if (std::min({m, n, k}) < SMALL || compute.ends_with("_pedantic")) return 0;
  std::string type = elements();
  if (type == "float16" || type == "bfloat16") return flop();
  if (type.starts_with("float8_e") || type == "int8") return flop() / 2;
  return type == "float32" && compute == "32f_fast_tf32" ? flop() * 2 : 0;
}

void MatrixProducts::line(const Line& line) {
  switch (line.kind) {
    case LineKind::call:
      return call(line);
    case LineKind::gpu_operation:
      return operation(line);
    case LineKind::gpu_sample:
      return counted_.sample(*line.sample);
    default:
      return;
  }
}

// The counters of what happens in the part may be read after it.
void MatrixProducts::outside(const Line& line) {
  if (line.sample) counted_.sample(*line.sample);
}

void MatrixProducts::call(const Line& line) {
  if (line.type == Type::product) return product(line);
  if (line.layer) {  // what another library launches is no product
    inside_.erase(line.id);
    return;
  }
  if (line.failed()) return;
  if (line.meaning->node == NodeWork::kernel) launch(line);
  if (line.meaning->node == NodeWork::graph && gives_work(line.work) && line.content)
    launched_graph(line);
}

// Comes before the product's line, since it ends earlier.
void MatrixProducts::launch(const Line& line) {
  if (!line.has(Field::within)) return;
  if (inside_.size() >= MAX_OPEN) {
    books_.left_out += inside_.size();
    inside_.clear();
  }
  inside_[line.within].push_back({line.kernel, line.grid});
}

std::uint32_t MatrixProducts::row_of(const Line& line) {
  Shape shape{line.m, line.n, line.k, line.batch, {}, {}, {}, {}};
  shape.trans = names_.text(line.trans);
  shape.types = names_.text(line.types);
  shape.compute = names_.text(line.compute);
  shape.epilogue = names_.text(line.epilogue);
  auto known = by_shape_.find(shape);
  if (known != by_shape_.end()) return known->second;
  if (rows_.size() > MAX_ROWS) {
    books_.left_out++;
    return NO_SHAPE;
  }
  auto row = static_cast<std::uint32_t>(rows_.size());
  rows_.emplace_back().shape = shape;
  by_shape_.emplace(std::move(shape), row);
  return row;
}

void MatrixProducts::product(const Line& line) {
  std::vector<Kernel> kernels;
  if (auto inside = inside_.find(line.id); inside != inside_.end()) {
    kernels = std::move(inside->second);
    inside_.erase(inside);
  }
  if (line.has(Field::parent)) {
    auto& around = inside_[line.parent];
    around.insert(around.end(), kernels.begin(), kernels.end());
    known_.add({.id = line.id, .parent = line.parent});
    return;
  }
  if (line.failed()) {
    books_.failed++;
    return;
  }
  std::uint32_t row = NO_SHAPE;
  if (line.shape_unknown)
    books_.unknown[std::string(names_.text(line.shape_unknown))] += !line.captured;
  else
    row = row_of(line);
  add_kernels(row, rows_[row].shape, kernels);
  if (!line.captured) {
    known_.add({.id = line.id, .row = row});
    rows_[row].count++;
  } else if (captured_.size() < MAX_CAPTURED) {
    captured_[line.id] = {row, std::move(kernels)};
  } else {
    books_.left_out++;
  }
}

void MatrixProducts::add_kernels(std::uint32_t row, const Shape& shape,
                                 const std::vector<Kernel>& kernels) {
  for (const Kernel& kernel : kernels) {
    std::set<std::string>& all = rows_[row].kernels;
    if (kernel.name && all.size() < MAX_KERNELS) all.emplace(names_.text(kernel.name));
    if (row != NO_SHAPE && kernel.name) check_tiles(shape, kernel);
  }
}

// A block of the grid computes a tile. A product that is split has several for each.
void MatrixProducts::check_tiles(const Shape& shape, const Kernel& kernel) {
  auto [rows, columns] = tiles_in(names_.text(kernel.name));
  if (!rows) return;
  auto tiles = [](std::uint64_t size, std::uint64_t tile) {
    return size / tile + (size % tile != 0);
  };
  std::uint64_t blocks = std::uint64_t{kernel.grid[0]} * kernel.grid[1];
  bool agrees = false;
  for (auto [m, n] : {std::pair(shape.m, shape.n), std::pair(shape.n, shape.m)}) {
    std::uint64_t needed = saturating_product(tiles(m, rows), tiles(n, columns));
    agrees |= needed && blocks % needed == 0;
  }
  (agrees ? books_.tiles_agree : books_.tiles_differ)++;
}

void MatrixProducts::launched_graph(const Line& line) {
  if (line.content->products.empty()) return;
  graphs_[line.content->number] = line.content;
  for (std::uint64_t id : line.content->products) {
    auto captured = captured_.find(id);
    if (captured == captured_.end()) continue;
    Row& row = rows_[captured->second.row];
    row.count++;
    row.in_graphs++;
  }
}

void MatrixProducts::operation(const Line& line) {
  if (!line.kernel) return;
  measured_ = true;
  if (line.issuer && line.issuer->graph) return operation_of_graph(line);
  Known* known = line.issuer ? known_.find(line.issuer->within) : nullptr;
  for (int depth = 0; known && known->parent && depth < 8; depth++)
    known = known_.find(known->parent);
  if (!known || known->parent) return unclaimed(line.kernel, {1, line.duration});
  Row& row = rows_[known->row];
  row.gpu = saturating_sum(row.gpu, line.duration);
  if (known->timed) return;
  row.timed++;
  known->timed = true;
  if (known->row != NO_SHAPE)
    counted_.ran(line.ts, line.end(), row.shape.half_flop(), row.shape.bytes());
}

void MatrixProducts::operation_of_graph(const Line& line) {
  bool known = graphs_.contains(line.issuer->graph) && line.has(Field::node);
  if (!known) return unclaimed(line.kernel, {1, line.duration});
  auto& nodes = nodes_[{line.issuer->graph, line.kernel.id, line.grid}];
  if (!nodes.contains(line.node) && nodes_kept_++ >= MAX_NODES) {
    books_.left_out++;
    return;
  }
  Ran& ran = nodes[line.node];
  ran.count++;
  ran.ns = saturating_sum(ran.ns, line.duration);
}

void MatrixProducts::unclaimed(Name kernel, const Ran& ran) {
  if (classes_.of(kernel) != KernelClass::matrix_multiply) return;
  books_.unclaimed += ran.count;
  books_.unclaimed_ns = saturating_sum(books_.unclaimed_ns, ran.ns);
}

// `expected`: the row of each product that has such a kernel, and whether it is its first.
void MatrixProducts::settle_nodes(const std::vector<std::pair<std::uint32_t, bool>>& expected,
                                  const std::map<std::uint32_t, Ran>& nodes) {
  bool alike = std::ranges::all_of(expected, [&](auto& one) { return one == expected.front(); });
  bool in_order = nodes.size() == expected.size();
  std::size_t place = 0;
  for (const auto& [number, ran] : nodes) {
    if (!alike && !in_order) {
      books_.ambiguous += ran.count;
      books_.ambiguous_ns = saturating_sum(books_.ambiguous_ns, ran.ns);
      continue;
    }
    auto [row, is_first] = expected[in_order ? place++ : 0];
    rows_[row].gpu = saturating_sum(rows_[row].gpu, ran.ns);
    if (is_first) rows_[row].timed += ran.count;
  }
}

void MatrixProducts::settle_graph(std::uint64_t number, const LaunchedGraph& graph) {
  std::map<InGraph, std::vector<std::pair<std::uint32_t, bool>>> expected;
  for (std::uint64_t id : graph.products) {
    auto captured = captured_.find(id);
    if (captured == captured_.end()) continue;
    bool is_first = true;
    for (const Kernel& kernel : captured->second.kernels) {
      expected[{number, kernel.name.id, kernel.grid}].emplace_back(captured->second.row, is_first);
      is_first = false;
    }
  }
  for (auto at = nodes_.lower_bound({number, 0, {}}); at != nodes_.end(); ++at) {
    if (std::get<0>(at->first) != number) break;
    auto products = expected.find(at->first);
    if (products != expected.end()) {
      settle_nodes(products->second, at->second);
      continue;
    }
    for (const auto& [node, ran] : at->second) unclaimed({std::get<1>(at->first)}, ran);
  }
}

void MatrixProducts::finish(const TraceFacts& facts) {
  were_recorded_ = facts.header.shapes;
  for (const Gpu& gpu : facts.header.gpus) {
    if (!gpu_.empty() && gpu_ != gpu.name) {
      gpu_.clear();
      break;
    }
    gpu_ = gpu.name;
  }
  for (const auto& [number, graph] : graphs_) settle_graph(number, *graph);
  for (std::size_t i = NO_SHAPE + 1; i < rows_.size(); i++) {
    const Row& row = rows_[i];
    if (!row.count) continue;
    if (measured_) books_.without_kernel += row.count - std::min(row.timed, row.count);
    sorted_.push_back(row);
  }
  std::ranges::stable_sort(sorted_, [](const Row& a, const Row& b) {
    auto key = [](const Row& row) {
      return std::pair(row.gpu, row.shape.flop() * as_double(row.count));
    };
    return key(a) > key(b);
  });
}

}  // namespace cudabpf::analyze
