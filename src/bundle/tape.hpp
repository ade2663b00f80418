// The operations of an iteration, in the order in which the program gave them to the driver:
// tape.jsonl, a line each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/manifest.hpp"

namespace cudabpf::bundle {

enum class Action : std::uint8_t {
  launch,
  graph,
  copy,
  set,
  record,
  wait,   // the stream, for an event
  await,  // the program, for an event
  sync,   // the program, for the stream
  drain,  // the program, for everything
  alloc,
  free,
};
inline constexpr std::array<std::string_view, 11> ACTIONS = {
    "launch", "graph", "copy", "set", "record", "wait", "await", "sync", "drain", "alloc", "free"};
constexpr const auto& names_of(Action) { return ACTIONS; }

using Dim = std::array<std::uint32_t, 3>;

struct Launch {
  std::uint32_t kernel = 0;
  Dim grid{}, block{};
  std::uint32_t shared = 0;
  bool cooperative = false;
  Extent parameters;                 // all of them, as they lie in one buffer
  std::optional<Extent> attributes;  // CUlaunchAttribute structs
  bool operator==(const Launch&) const = default;
};
DESCRIBE(Launch, kernel, grid, block, shared, cooperative, parameters, attributes)

struct Rows {  // of a copy or a fill; a plain one has one row
  std::uint64_t width = 0, height = 1, depth = 1;
  std::uint64_t bytes() const { return width * height * depth; }
  bool is_empty() const { return !width || !height || !depth; }
  bool operator==(const Rows&) const = default;
};
DESCRIBE(Rows, width, height, depth)

struct Place {
  std::optional<Address> address;  // on a GPU
  std::uint64_t pitch = 0, slice = 0;
  bool operator==(const Place&) const = default;
};
DESCRIBE(Place, address, pitch, slice)

// From the first byte to the last of all rows; nothing: more than there can be.
std::optional<std::uint64_t> extent_of(const Rows& rows, const Place& place);
// Whether rows lie where memory can. Places on the host always do.
bool is_place(const Rows& rows, const Place& place);

struct Copy {
  Rows rows;
  Place to, from;              // without an address: on the host
  std::optional<Extent> data;  // what came from the host, or what the program received there
  bool operator==(const Copy&) const = default;
};
DESCRIBE(Copy, rows, to, from, data)

struct Set {
  Rows rows;  // in bytes
  Place to;
  std::uint32_t value = 0, element = 1;  // bytes of one
  bool operator==(const Set&) const = default;
};
DESCRIBE(Set, rows, to, value, element)

// Those of a graph come one after the other: none begins before what it depends on.
struct GraphNode {
  std::optional<Launch> launch;  // or
  std::optional<Copy> copy;      // or
  std::optional<Set> set;
  bool operator==(const GraphNode&) const = default;
};
DESCRIBE(GraphNode, launch, copy, set)

struct Operation {
  Action action = Action::launch;
  std::uint64_t call = 0;    // its id in the trace
  std::uint32_t stream = 0;  // of the manifest's
  std::uint32_t device = 0;
  std::optional<Launch> launch;
  // Its nodes come with its first launch, and when they change.
  std::optional<std::uint32_t> graph;
  std::vector<GraphNode> nodes;
  std::optional<Copy> copy;
  std::optional<Set> set;
  std::optional<std::uint32_t> event;  // recorded, or waited for
  std::optional<Block> memory;         // allocated, or freed
  std::optional<std::string> refused;  // why it is not run again
  bool operator==(const Operation&) const = default;
};

std::string line_of(const Operation& operation);
// What is returned refers only to what the manifest has.
Result<Operation> operation_in(std::string_view line, const Manifest& manifest);

}  // namespace cudabpf::bundle
