// What calls say of graphs and of their nodes.
#pragma once

#include <cstdint>
#include <optional>

#include "cudabpf/event.hpp"

namespace cudabpf {

// Whether work given to a stream by such a call goes into a graph, while the stream is captured.
bool may_be_captured(const Function& function);
// Whether such a call begins or ends captures.
bool is_about_captures(const Function& function);
// Whether it is needed to know what graphs hold.
bool concerns_graphs(const Function& function);

// What the call would have the GPU do, or the node that it adds or changes.
GraphOperation work_of_call(const Call& call);

// The first argument of this kind that was given to the call; nothing if it has none or it was not
// recorded.
std::optional<std::uint64_t> argument_of(const Call& call, Role role);

}  // namespace cudabpf
