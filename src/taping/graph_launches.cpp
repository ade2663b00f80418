// Launches of graphs, on the tape.
#include <cstring>

#include "taping/graphs.hpp"
#include "taping/tape_writer.hpp"

namespace cudabpf::taping {

namespace {

using bundle::Action;

struct KernelStruct {  // CUDA_KERNEL_NODE_PARAMS_v2
  std::uint64_t function;
  bundle::Dim grid, block;
  std::uint32_t shared, padding;
  std::uint64_t parameters, extra, kernel, context;
};
static_assert(sizeof(KernelStruct) == 72);

struct SetStruct {  // CUDA_MEMSET_NODE_PARAMS
  std::uint64_t to, pitch;
  std::uint32_t value, element;
  std::uint64_t width, height;
};
static_assert(sizeof(SetStruct) == 40);

template <typename Struct>
Struct given(const KeptNode& node) {
  Struct as{};
  std::memcpy(&as, node.given.data(), std::min(sizeof(as), node.given.size()));
  return as;
}

// What keeps it from being run again; empty: nothing does.
std::string add_set_node(const KeptNode& node, bundle::Operation& operation) {
  auto wanted = given<SetStruct>(node);
  if (wanted.element != 1 && wanted.element != 2 && wanted.element != 4)
    return "a fill in it has elements of another size than 1, 2 or 4 bytes";
  bundle::Set set;
  set.element = wanted.element;
  set.value = wanted.value;
  if (set.element < 4) set.value &= (1U << 8 * set.element) - 1;
  if (__builtin_mul_overflow(wanted.width, std::uint64_t{set.element}, &set.rows.width))
    return "a fill in it has no range of addresses";
  set.rows.height = wanted.height;
  if (set.rows.is_empty()) return {};
  set.to.address = {wanted.to};
  if (set.rows.height > 1) set.to.pitch = wanted.pitch;
  if (!bundle::is_place(set.rows, set.to)) return "a fill in it has no range of addresses";
  operation.nodes.emplace_back().set = set;
  return {};
}

}  // namespace

// Nodes that wait for events or record them are not among a tape's nodes: the graph waits before
// all of it, and records after all of it.
Result<> TapeWriter::add_graph(const KeptCall& call) {
  auto [known, is_new] = graphs_.try_emplace(call.word(0));
  GraphOnTape& graph = known->second;
  if (is_new) graph.number = manifest_.graphs++;
  bundle::Operation operation = operation_of(call, Action::graph);
  if (!call.graph || graph.written != call.graph) {
    TRY(describe_graph(call, graph, operation));
    // That there are none any more can only be said of another graph.
    if (graph.has_nodes && operation.nodes.empty()) graph.number = manifest_.graphs++;
    graph.has_nodes = !operation.nodes.empty();
  }
  operation.graph = graph.number;
  operation.refused = graph.refused;
  if (graph.refused) refuse("a graph", *graph.refused);
  auto add_events = [&](const std::vector<std::uint64_t>& events, Action action) -> Result<> {
    for (std::uint64_t handle : events) {
      bundle::Operation one = operation_of(call, action);
      one.event = event(handle);
      TRY(folder_.add(one));
    }
    return ok();
  };
  TRY(add_events(graph.waits, Action::wait));
  TRY(folder_.add(operation));
  return add_events(graph.records, Action::record);
}

Result<> TapeWriter::describe_graph(const KeptCall& call, GraphOnTape& graph,
                                    bundle::Operation& operation) {
  graph.written = call.graph;
  graph.waits.clear();
  graph.records.clear();
  graph.refused.reset();
  auto refused = [&](std::string why) {
    graph.waits.clear();
    graph.records.clear();
    operation.nodes.clear();
    graph.refused = std::move(why);
    return ok();
  };
  if (!call.graph) return refused("it was instantiated where no capture could see it");
  auto work = work_of(*call.graph, process_);
  if (!work) return refused(work.error().message);
  for (const KeptNode& node : *work) {
    if (node.type == NodeType::wait || node.type == NodeType::record) {
      auto& events = node.type == NodeType::wait ? graph.waits : graph.records;
      events.push_back(given<std::uint64_t>(node));
      continue;
    }
    if (std::string why = TRY(add_node(node, operation)); !why.empty()) return refused(why);
  }
  return ok();
}

Result<std::string> TapeWriter::add_node(const KeptNode& node, bundle::Operation& operation) {
  if (node.type == NodeType::copy) return add_copy_node(node, operation);
  if (node.type == NodeType::set) return add_set_node(node, operation);
  auto wanted = given<KernelStruct>(node);
  for (const bundle::Dim& dim : {wanted.grid, wanted.block})
    for (std::uint32_t length : dim)
      if (!length) return std::string("a kernel in it has no threads");
  bundle::Launch launch;
  launch.kernel = TRY(kernel(wanted.function ? wanted.function : wanted.kernel, "", wanted.shared));
  launch.grid = wanted.grid;
  launch.block = wanted.block;
  launch.shared = wanted.shared;
  launch.parameters = TRY(folder_.add_data(node.parameters));
  if (!node.attributes.empty()) launch.attributes = TRY(folder_.add_data(node.attributes));
  operation.nodes.emplace_back().launch = launch;
  return std::string();
}

}  // namespace cudabpf::taping
