// What a process's executable graphs hold: the nodes of the graphs that they were made of, and the
// changes since.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cudabpf/event.hpp"
#include "cudabpf/taped_process.hpp"
#include "taping/kept_nodes.hpp"

namespace cudabpf::taping {

// At one moment. Places are payloads'.
struct ExecutableGraph {
  struct Change {
    std::uint64_t order = 0;  // later ones have larger numbers
    std::uint64_t given = 0;  // what the node is given now; 0: what it was
    bool disabled = false;
  };

  std::uint64_t first = 0;  // the graph that it was instantiated from: its nodes name this one's
  std::uint64_t nodes = 0;  // the graph that it was last updated from, or the same
  std::map<std::uint64_t, Change> changes;  // by nodes' handles
  std::uint64_t changed = 0;                // how often
  bool unknown_change = false;              // what a call gave a node was not kept
};

class Graphs {
 public:
  void call(const Call& call);
  // As it is now: what is returned does not change. Null: it is not known.
  std::shared_ptr<const ExecutableGraph> executable(std::uint64_t handle) const;

 private:
  ExecutableGraph* to_change(std::uint64_t handle);
  void update(std::uint64_t handle, std::uint64_t nodes);
  void set(std::uint64_t handle, std::uint64_t node, std::uint64_t given);
  void enable(std::uint64_t handle, std::uint64_t node, bool enabled);

  std::map<std::uint64_t, std::shared_ptr<ExecutableGraph>> executables_;
};

// What a launch of it does, one after the other: kernels, copies, fills, and waits for and records
// of events, where they are enabled. An error says why a launch of it cannot be captured.
Result<std::vector<KeptNode>> work_of(const ExecutableGraph& graph, const TapedProcess& process);

}  // namespace cudabpf::taping
