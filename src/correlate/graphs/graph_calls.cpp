#include "correlate/graphs/graph_calls.hpp"

#include "cudabpf/describe.hpp"

namespace cudabpf {

namespace {

bool has_stream(const Function& function) {
  for (const Argument& argument : function.arguments)
    if ((argument.role == Role::stream && !argument.out) ||
        argument.layout == Struct::launch_config || argument.layout == Struct::launch_params)
      return true;
  return false;
}

}  // namespace

bool may_be_captured(const Function& function) {
  return function.meaning.node != NodeWork::none && has_stream(function);
}

bool is_about_captures(const Function& function) {
  return function.graph == GraphAction::begin_capture || function.graph == GraphAction::end_capture;
}

bool concerns_collectives(const Function& function) {
  return function.graph != GraphAction::none || function.joins_captures();
}

bool concerns_graphs(const Function& function) {
  return concerns_collectives(function) || may_be_captured(function);
}

GraphOperation work_of_call(const Call& call) {
  const Function& function = *call.function;
  const Details& details = call.details;
  GraphOperation work;
  work.what = details.node;
  if (work.what == NodeWork::none) work.what = function.node;
  if (work.what == NodeWork::none) work.what = function.meaning.node;
  switch (work.what) {
    case NodeWork::kernel:
      work.kernel = call.kernel;
      if (!work.kernel) work.handle = details.handle.value_or(0);
      work.has_dims = details.has_dims;
      work.grid = details.grid;
      work.block = details.block;
      work.shared = details.shared;
      break;
    case NodeWork::copy:
    case NodeWork::set:
    case NodeWork::alloc:
      work.size = details.size;
      break;
    default:
      break;
  }
  return work;
}

std::optional<std::uint64_t> argument_of(const Call& call, Role role) {
  return argument_of(*call.function, call.words, role);
}

}  // namespace cudabpf
