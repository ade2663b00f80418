#include "bundle/tape.hpp"

#include <optional>
#include <utility>

namespace cudabpf::bundle {

void describe(auto& fields, Is<Operation> auto& operation) {
  fields("op", operation.action);
  fields("call", operation.call);
  fields("stream", operation.stream);
  fields("device", operation.device);
  fields("launch", operation.launch);
  fields("graph", operation.graph);
  fields("nodes", operation.nodes);
  fields("copy", operation.copy);
  fields("set", operation.set);
  fields("event", operation.event);
  fields("memory", operation.memory);
  fields("refused", operation.refused);
}

std::optional<std::uint64_t> extent_of(const Rows& rows, const Place& place) {
  std::uint64_t planes = 0, lines = 0, all = 0;
  if (rows.is_empty()) return 0;
  if (__builtin_mul_overflow(rows.depth - 1, place.slice, &planes) ||
      __builtin_mul_overflow(rows.height - 1, place.pitch, &lines) ||
      __builtin_add_overflow(planes, lines, &all) || __builtin_add_overflow(all, rows.width, &all))
    return std::nullopt;
  return all;
}

bool is_place(const Rows& rows, const Place& place) {
  if (!place.address) return true;
  auto size = extent_of(rows, place);
  return size && *size > 0 && is_range(place.address->value, *size);
}

namespace {

constexpr std::uint64_t ATTRIBUTE_SIZE = 72, MAX_ATTRIBUTES = 64;  // CUlaunchAttribute

// Bytes of all rows; nothing: more than there can be.
std::optional<std::uint64_t> size_of(const Rows& rows) {
  std::uint64_t plane = 0, size = 0;
  if (__builtin_mul_overflow(rows.width, rows.height, &plane) ||
      __builtin_mul_overflow(plane, rows.depth, &size) || size > MAX_ADDRESS)
    return std::nullopt;
  return size;
}

std::string fault_of(const Launch& launch, const Manifest& manifest) {
  if (launch.kernel >= manifest.kernels.size()) return "kernel is none of the kernels";
  for (const Dim& dim : {launch.grid, launch.block})
    for (std::uint32_t length : dim)
      if (!length) return "grid and block have lengths of zero";
  if (!is_in(launch.parameters, manifest) || launch.parameters.size > MAX_PARAMETERS)
    return "parameters are not in the file";
  if (launch.attributes &&
      (!is_in(*launch.attributes, manifest) || launch.attributes->size % ATTRIBUTE_SIZE ||
       launch.attributes->size > ATTRIBUTE_SIZE * MAX_ATTRIBUTES))
    return "attributes are not in the file";
  return {};
}

std::string fault_of(const Copy& copy, const Manifest& manifest) {
  auto size = size_of(copy.rows);
  if (!size || !is_place(copy.rows, copy.to) || !is_place(copy.rows, copy.from))
    return "copy has no range of addresses";
  if (copy.data && (!is_in(*copy.data, manifest) || copy.data->size != *size))
    return "copy has other data than its size";
  return {};
}

std::string fault_of(const Set& set, const Manifest&) {
  bool is_element = set.element == 1 || set.element == 2 || set.element == 4;
  if (!set.to.address || !size_of(set.rows) || !is_place(set.rows, set.to) || !is_element)
    return "set has no range of addresses";
  return {};
}

template <typename Thing>
std::string fault_of(const std::optional<Thing>& thing, const Manifest& manifest) {
  return thing ? fault_of(*thing, manifest) : std::string();
}

// Operations and graph nodes do the same kinds of work.
template <typename Does>
std::string fault_of_work(const Does& does, const Manifest& manifest) {
  std::string fault = fault_of(does.launch, manifest);
  if (fault.empty()) fault = fault_of(does.copy, manifest);
  return fault.empty() ? fault_of(does.set, manifest) : fault;
}

// Whether it has what its action needs, and nothing else.
bool is_complete(const Operation& operation) {
  auto has = [&](Action action, bool present) { return present == (operation.action == action); };
  bool is_event = operation.action == Action::record || operation.action == Action::wait ||
                  operation.action == Action::await;
  bool is_memory = operation.action == Action::alloc || operation.action == Action::free;
  return has(Action::launch, operation.launch.has_value()) &&
         has(Action::graph, operation.graph.has_value()) &&
         has(Action::copy, operation.copy.has_value()) &&
         has(Action::set, operation.set.has_value()) && is_event == operation.event.has_value() &&
         is_memory == operation.memory.has_value() &&
         (operation.nodes.empty() || operation.action == Action::graph);
}

std::string fault_of(const Operation& operation, const Manifest& manifest) {
  if (!is_complete(operation)) return "it does not have what its op needs";
  if (operation.stream >= manifest.streams.size()) return "stream is none of the streams";
  if (operation.device >= manifest.devices.size()) return "device is none of the devices";
  if (operation.event && *operation.event >= manifest.events) return "event is none of the events";
  if (operation.graph && *operation.graph >= manifest.graphs) return "graph is none of the graphs";
  if (operation.memory && !is_range(operation.memory->address.value, operation.memory->size))
    return "memory is no range of addresses";
  std::string fault = fault_of_work(operation, manifest);
  for (const GraphNode& node : operation.nodes) {
    if (node.launch.has_value() + node.copy.has_value() + node.set.has_value() != 1)
      return "a node does not do one thing";
    if (fault.empty()) fault = fault_of_work(node, manifest);
  }
  return fault;
}

}  // namespace

std::string line_of(const Operation& operation) { return Writing::text_of(operation); }

Result<Operation> operation_in(std::string_view line, const Manifest& manifest) {
  if (nests_too_deep(line)) return Error{"it nests too deep", {}};
  Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return Error{"it is not JSON", {}};
  Operation operation;
  std::string fault = Reading::read(json, "operation", operation);
  if (fault.empty()) fault = fault_of(operation, manifest);
  if (!fault.empty()) return Error{std::move(fault), {}};
  return operation;
}

}  // namespace cudabpf::bundle
