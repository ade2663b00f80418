#include "analyze/derived/communication.hpp"

#include <algorithm>

namespace cudabpf::analyze {

void Communication::follow(Line& line, GraphContents& graphs) {
  if (line.kind == LineKind::call) return call(line);
  if (line.kind != LineKind::gpu_operation) return;
  const Asking* asking = line.issuer ? asking_.find(line.issuer->within) : nullptr;
  if (line.op == Type::graph) {
    const LaunchedGraph* graph = line.issuer ? graphs.content_of(line.issuer->graph) : nullptr;
    line.holds_collectives = graph && holds_collectives(*graph);
  } else {
    line.communicates =
        line.kernel ? classes_.of(line.kernel) == KernelClass::collective : asking != nullptr;
  }
  if (line.communicates && asking) line.collective = asking->collective;
}

// A group's collectives are queued until it ends, and then run together.
void Communication::call(const Line& line) {
  if (line.type == Type::group) {
    const Group* group = line.has(Field::call_group) ? groups_.find(line.call_group) : nullptr;
    asking_.add({line.id, group ? group->collective : AskedCollective()});
  }
  if (line.type != Type::collective || line.failed()) return;
  AskedCollective collective{line.op, 1, line.size, line.communicator, line.seq};
  asking_.add({line.id, collective});
  if (!line.has(Field::call_group)) return;
  if (Group* group = groups_.find(line.call_group))
    group->collective.together++;
  else
    groups_.add({line.call_group, collective});
}

bool Communication::holds_collectives(const LaunchedGraph& graph) {
  auto [known, is_new] = graphs_.try_emplace(graph.number);
  if (is_new)
    known->second = std::any_of(graph.list.begin(), graph.list.end(), [&](const NodesAlike& nodes) {
      return nodes.kernel && classes_.of(nodes.kernel) == KernelClass::collective;
    });
  return known->second;
}

}  // namespace cudabpf::analyze
