// What calls say of graphs and of their nodes.
#pragma once

#include <cstdint>
#include <optional>

#include "cudabpf/event.hpp"

namespace cudabpf {

enum class GraphAction : std::uint8_t {
  none,
  create,
  clone,
  destroy,
  add_node,
  remove_node,
  set_node,       // what a node of a graph does
  find_in_clone,  // a cloned node's handle
  get_child,      // the handle of the graph that a node holds
  instantiate,
  update,            // what is instantiated becomes what another graph holds
  set_exec_node,     // what a node does in what is instantiated
  enable_exec_node,  // or whether it does anything
  destroy_exec,
  launch,
  begin_capture,
  end_capture,
};

// What a call to the function does with graphs.
GraphAction graph_action(const Function& function);

// Whether work given to a stream by such a call goes into a graph, while the stream is captured.
bool may_be_captured(const Function& function);
// Whether it is needed to know what graphs hold.
bool concerns_graphs(const Function& function);

// What the call would have the GPU do, or the node that it adds or changes.
GraphWork work_of_call(const Call& call);

// The first argument of this kind that was given to the call; nothing if it has none or it was not
// recorded.
std::optional<std::uint64_t> argument_of(const Call& call, Role role);

}  // namespace cudabpf
