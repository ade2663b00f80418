#include "taping/kept_nodes.hpp"

#include <cstring>
#include <functional>
#include <queue>

#include "util/hash.hpp"

namespace cudabpf::taping {

namespace {

constexpr const char* WRONG = "what was kept of its nodes makes no sense";

// Takes parts off the beginning of bytes. After one that was not there, none is.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : rest_(bytes) {}

  template <typename Head>
  std::optional<Head> head() {
    auto bytes = take(sizeof(Head));
    if (!bytes) return std::nullopt;
    Head head;
    std::memcpy(&head, bytes->data(), sizeof(head));
    return head;
  }

  // Padded.
  std::optional<std::string_view> take(std::uint64_t size) {
    if (size > rest_.size() || CI_PADDED(size) > rest_.size()) {
      rest_ = {};
      return std::nullopt;
    }
    std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(CI_PADDED(size));
    return part;
  }

 private:
  std::string_view rest_;
};

std::uint64_t size_of_given(NodeType type) {
  switch (type) {
    case NodeType::kernel:
      return 72;
    case NodeType::copy:
      return 200;
    case NodeType::set:
      return 40;
    case NodeType::wait:
    case NodeType::record:
      return 8;
    default:
      return 0;
  }
}

// Whether the node is of a graph that is known by then.
bool is_held(const abi::ci_node& head, const std::vector<KeptNode>& before) {
  return head.holder <= before.size() &&
         (!head.holder || before[head.holder - 1].type == NodeType::graph);
}

std::optional<KeptNode> node_in(Parts& parts, const std::vector<KeptNode>& before) {
  auto head = parts.head<abi::ci_node>();
  if (!head || !is_held(*head, before)) return std::nullopt;
  KeptNode node;
  node.handle = head->handle;
  node.type = static_cast<NodeType>(head->type);
  node.holder = head->holder;
  node.unreadable = head->unreadable;
  if (head->given != size_of_given(node.type) || head->parameters > CI_MAX_PARAMETER_BYTES ||
      head->attributes % CI_LAUNCH_ATTRIBUTE ||
      head->attributes > CI_LAUNCH_ATTRIBUTE * CI_MAX_LAUNCH_ATTRIBUTES)
    return std::nullopt;
  auto given = parts.take(head->given);
  auto parameters = parts.take(head->parameters), attributes = parts.take(head->attributes);
  if (!given || !parameters || !attributes) return std::nullopt;
  node.given = *given;
  node.parameters = *parameters;
  node.attributes = *attributes;
  return node;
}

// False: one has an end that is none of the nodes, or in another graph.
bool read_edges(Parts parts, std::uint64_t count, KeptNodes& kept) {
  HashMap<std::uint64_t, std::size_t> places;
  for (std::size_t i = 0; i < kept.nodes.size(); i++)
    if (!places.emplace(kept.nodes[i].handle, i).second) return false;
  for (; count; count--) {
    auto edge = parts.head<abi::ci_edge>();
    if (!edge) return false;
    auto from = places.find(edge->from), to = places.find(edge->to);
    if (from == places.end() || to == places.end() ||
        kept.nodes[from->second].holder != kept.nodes[to->second].holder)
      return false;
    kept.edges.emplace_back(from->second, to->second);
  }
  return true;
}

}  // namespace

Result<KeptNodes> nodes_in(const std::optional<Payload>& payload) {
  if (!payload || payload->state != abi::CI_FILLED) return Error{"its nodes could not be read", {}};
  Parts parts(payload->bytes);
  auto head = parts.head<abi::ci_nodes>();
  if (!head) return Error{WRONG, {}};
  if (head->fault == abi::CI_NODES_TOO_MANY) return Error{"it is too large", {}};
  if (head->fault != abi::CI_NODES_COMPLETE) return Error{"its nodes could not be read", {}};
  std::uint64_t edges = payload->more.size() / sizeof(abi::ci_edge);
  if (head->count > CI_MAX_NODES || edges > CI_MAX_EDGES || (head->of_node && head->count != 1))
    return Error{WRONG, {}};
  KeptNodes kept;
  kept.of_node = head->of_node;
  for (std::uint32_t i = 0; i < head->count; i++) {
    auto node = node_in(parts, kept.nodes);
    if (!node) return Error{WRONG, {}};
    kept.nodes.push_back(std::move(*node));
  }
  if (!read_edges(Parts(payload->more), edges, kept)) return Error{WRONG, {}};
  return kept;
}

Result<std::vector<std::size_t>> order_of(const KeptNodes& kept) {
  std::size_t count = kept.nodes.size();
  std::vector<std::size_t> awaited(count);  // how many each comes after
  std::vector<std::vector<std::size_t>> after(count), in_graph(count + 1);
  for (auto [from, to] : kept.edges) {
    after[from].push_back(to);
    awaited[to]++;
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; i++)
    if (!awaited[i]) ready.push(i);
  for (; !ready.empty();) {
    std::size_t next = ready.top();
    ready.pop();
    in_graph[kept.nodes[next].holder].push_back(next);
    for (std::size_t waiting : after[next])
      if (!--awaited[waiting]) ready.push(waiting);
  }
  std::vector<std::size_t> order;
  // Graphs that hold each other may be as deep as there are nodes: no recursion.
  std::vector<std::pair<std::size_t, std::size_t>> open = {{0, 0}};  // graph, how far
  while (!open.empty()) {
    auto& [graph, at] = open.back();
    if (at == in_graph[graph].size()) {
      open.pop_back();
      continue;
    }
    std::size_t node = in_graph[graph][at++];
    order.push_back(node);
    if (kept.nodes[node].type == NodeType::graph) open.emplace_back(node + 1, 0);
  }
  if (order.size() != count) return Error{"its nodes wait for each other", {}};
  return order;
}

}  // namespace cudabpf::taping
