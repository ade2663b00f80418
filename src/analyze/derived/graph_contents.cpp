#include "analyze/derived/graph_contents.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "util/saturating.hpp"
#include "util/text/json_text.hpp"
#include "util/whole_number.hpp"

namespace cudabpf::analyze {

namespace {

using Parsed = nlohmann::json;

std::uint64_t figure_in(const Parsed& node, const char* key) {
  auto at = node.find(key);
  return at != node.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

NodeWork work_in(const Parsed& node) {
  std::string op = text_in(node, "op");
  for (NodeWork work : {NodeWork::kernel, NodeWork::copy, NodeWork::set, NodeWork::alloc,
                        NodeWork::free, NodeWork::host})
    if (op == to_string(work)) return work;
  return NodeWork::other;
}

std::uint64_t handle_of(const Parsed& node) {
  std::string text = text_in(node, "handle");
  if (!text.starts_with("0x")) return 0;
  return whole_number<std::uint64_t>(std::string_view(text).substr(2), 16).value_or(0);
}

std::uint32_t narrow(std::uint64_t number) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(number, std::numeric_limits<std::uint32_t>::max()));
}

Dimensions sizes_in(const Parsed& node, const char* key) {
  auto at = node.find(key);
  if (at == node.end() || !at->is_array() || at->size() != 3) return {};
  Dimensions sizes{};
  for (std::size_t i = 0; i < sizes.size(); i++) {
    const Parsed& size = (*at)[i];
    if (!size.is_number_unsigned()) return {};
    sizes[i] = narrow(size.get<std::uint64_t>());
  }
  return sizes;
}

NodesAlike nodes_in(const Parsed& node, Names& names) {
  NodesAlike nodes;
  nodes.what = work_in(node);
  nodes.size = figure_in(node, "size");
  nodes.count = figure_in(node, "count");
  auto conditional = node.find("conditional");
  nodes.conditional = conditional != node.end() && *conditional == true;
  if (nodes.what != NodeWork::kernel) return nodes;
  nodes.kernel = names.add(text_in(node, "kernel"));
  if (!nodes.kernel) nodes.handle = handle_of(node);
  nodes.grid = sizes_in(node, "grid");
  nodes.block = sizes_in(node, "block");
  nodes.shared = narrow(figure_in(node, "shared"));
  return nodes;
}

// The list names the kernels, and the line counts them: only the count is known of nodes that were
// not listed.
void add_up(LaunchedGraph& graph) {
  std::uint64_t nodes = 0, kernels = 0;
  for (const NodesAlike& one : graph.list) {
    bool is_kernel = one.what == NodeWork::kernel;
    if (one.conditional) continue;
    nodes = saturating_sum(nodes, one.count);
    if (is_kernel) kernels = saturating_sum(kernels, one.count);
    if (one.what == NodeWork::copy)
      graph.bytes_copied =
          saturating_sum(graph.bytes_copied, saturating_product(one.size, one.count));
  }
  graph.nodes = std::max(graph.nodes, nodes);
  graph.kernels = std::max(graph.kernels, kernels);
  graph.unlisted_kernels = graph.kernels - kernels;
}

// All of them, or none: some alone would be taken for all that a launch runs.
std::vector<std::uint64_t> calls_in(const Parsed& json, const char* kind, std::size_t at_most) {
  std::vector<std::uint64_t> ids;
  const Parsed* list = list_in(json, kind);
  if (!list || list->size() > at_most) return ids;
  for (const Parsed& id : *list) {
    if (!id.is_number_unsigned()) return {};
    ids.push_back(id.get<std::uint64_t>());
  }
  return ids;
}

}  // namespace

void GraphContents::follow(Line& line) {
  bool launches = line.meaning->node == NodeWork::graph;
  if ((!launches && line.kind != LineKind::graph) || !line.has(Field::graph)) return;
  if (line.kind == LineKind::graph && !content_of(line.graph)) add(line);
  line.content = content_of(line.graph);
}

const LaunchedGraph* GraphContents::content_of(std::uint64_t number) {
  if (last_ && last_->number == number) return last_;
  auto at = graphs_.find(number);
  return at == graphs_.end() ? nullptr : last_ = at->second.get();
}

void GraphContents::add(const Line& line) {
  auto json = parsed(line.text);
  auto content = json.find("content");
  if (content == json.end() || !content->is_array()) return;
  std::size_t listed = std::min(content->size(), MAX_LISTED);
  if (graphs_.size() >= MAX_GRAPHS || nodes_ + listed > MAX_NODES) return;
  auto graph = std::make_unique<LaunchedGraph>();
  graph->number = line.graph;
  graph->nodes = line.nodes;
  graph->kernels = line.kernels;
  for (std::size_t i = 0; i < listed; i++)
    if ((*content)[i].is_object()) graph->list.push_back(nodes_in((*content)[i], names_));
  auto calls = [&](const char* kind) {
    std::vector<std::uint64_t> ids = calls_in(json, kind, std::min(MAX_CALLS, MAX_NODES - nodes_));
    nodes_ += ids.size();
    return ids;
  };
  nodes_ += listed;
  graph->collectives = calls("collectives");
  graph->products = calls("products");
  add_up(*graph);
  graphs_[line.graph] = std::move(graph);
}

}  // namespace cudabpf::analyze
