// What a call means to the GPU, by its type and op, from meanings.tsv. Stages ask for a meaning
// instead of comparing a call's type, op or name.
#pragma once

#include <cstdint>
#include <string_view>

namespace cudabpf {

// The few kinds of work that analyses of a program's execution distinguish.
enum class Work : std::uint8_t {
  other,      // queries, events, streams
  recorded,   // work that is added to a graph for later, while its stream is captured
  setup,      // init, devices, contexts
  module,     // code is loaded, compiled or looked up
  memory,     // allocated, freed, mapped
  launch,     // of a kernel or a graph
  set,        // memory is filled by the GPU
  to_device,  // copies
  to_host,
  copy,  // in another direction, or an unknown one
  wait,  // for the GPU
};

// Whether it gives the GPU something to do.
constexpr bool gives_work(Work work) { return work >= Work::launch && work <= Work::copy; }

// What a graph's node does.
enum class NodeWork : std::uint8_t {
  none,
  kernel,
  copy,
  set,
  alloc,
  free,
  host,
  graph,        // what another graph holds
  conditional,  // what a graph holds, any number of times
  other,        // events, semaphores, nothing
};

constexpr std::string_view to_string(NodeWork work) {
  constexpr std::string_view NAMES[] = {"",     "kernel", "copy",  "set",         "alloc",
                                        "free", "host",   "graph", "conditional", "other"};
  return NAMES[static_cast<std::size_t>(work)];
}

// The total that a call is counted in, in answers.
enum class CountedAs : std::uint8_t { none, launches, copies, waits, allocations, frees };

constexpr std::string_view to_string(CountedAs what) {
  constexpr std::string_view NAMES[] = {"", "launches", "copies", "waits", "allocations", "frees"};
  return NAMES[static_cast<std::size_t>(what)];
}

enum class MemoryEffect : std::uint8_t {
  none,
  alloc,
  free,
  map,
  unmap,
  register_,
  unregister,
  import,  // memory of another process becomes known by a handle
  retain,  // a handle has one more user
};

enum class EventEffect : std::uint8_t { none, record, wait, destroy, query };
enum class StreamEffect : std::uint8_t { none, create, destroy, query };

// Whether a call's return says nothing new.
enum class EntryIsEnough : std::uint8_t { never, async, always };

struct Meaning {
  Work work = Work::other;
  CountedAs counted = CountedAs::none;
  NodeWork node = NodeWork::none;  // what it becomes in a graph while its stream is captured
  MemoryEffect memory = MemoryEffect::none;
  EventEffect event = EventEffect::none;
  StreamEffect stream = StreamEffect::none;
  EntryIsEnough entry = EntryIsEnough::never;
  bool measured = false;    // CUPTI reports what the GPU did for it
  bool one_device = false;  // it works on its stream's device, or the current context's
  bool pairwise = false;    // it concerns its rank and one peer, not the whole communicator
  bool tally = false;       // what follows from its arguments concerns no later call
};

// What a call does with graphs and executable graphs.
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
  update,            // the executable graph takes over what another graph holds
  set_exec_node,     // what a node does in the executable graph
  enable_exec_node,  // or whether it does anything
  destroy_exec,
  launch,
  begin_capture,
  end_capture,
};

}  // namespace cudabpf
