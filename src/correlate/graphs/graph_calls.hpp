// What calls say of graphs and of their nodes.
#pragma once

#include <cstdint>
#include <optional>

#include "cudabpf/event.hpp"

namespace cudabpf {

// Whether such a call adds work to a graph while its stream is captured.
bool may_be_captured(const Function& function);
// Whether such a call begins or ends captures.
bool is_about_captures(const Function& function);
// Whether such calls are needed to know which collectives graphs hold, and to know all that they
// hold.
bool concerns_collectives(const Function& function);
bool concerns_graphs(const Function& function);

// The GPU operation that the call issues, or that of the node that it adds or changes.
GraphOperation work_of_call(const Call& call);

// The call's first argument of this kind; nothing if it has none or it was not recorded.
std::optional<std::uint64_t> argument_of(const Call& call, Role role);

}  // namespace cudabpf
