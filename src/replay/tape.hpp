// The tape of a capture folder, step by step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/ranges.hpp"

namespace cudabpf::replay {

using bundle::Action;
using bundle::Manifest;

// A block or a variable.
Range range_of(const auto& memory) {
  return {memory.address.value, memory.address.value + memory.size};
}

// An operation; or, if that launches a graph, one of the graph's nodes.
struct Step {
  Action action = Action::launch;
  const bundle::Operation* operation = nullptr;
  const bundle::Launch* launch = nullptr;  // or
  const bundle::Copy* copy = nullptr;      // or
  const bundle::Set* set = nullptr;        // or none of these
  // A hash of a launch's parameters, in which addresses of the program's memory count as zeroes.
  std::size_t scalars = 0;

  std::uint32_t stream() const { return operation->stream; }
};

class Tape {
 public:
  // All of the folder's tape.
  static Result<Tape> read(bundle::Folder& folder);
  Tape(Tape&&) = default;
  Tape& operator=(Tape&&) = default;

  const std::vector<bundle::Operation>& operations() const { return operations_; }
  // A graph's nodes come where it is launched, though the tape has them only where they changed.
  const std::vector<Step>& steps() const { return steps_; }
  std::uint64_t graph_launches() const { return graph_launches_; }

 private:
  Tape() = default;
  Result<> add_graph(const bundle::Operation& operation,
                     std::vector<const bundle::Operation*>& nodes_of);
  Result<> compare_parameters(const bundle::Folder& folder);

  std::vector<bundle::Operation> operations_;
  std::vector<Step> steps_;  // they point into the operations
  std::uint64_t graph_launches_ = 0;
};

// Why the step is not run, if the capture says that it cannot be; empty: nothing is said.
std::string refusal_of(const Step& step, const Manifest& manifest);

// The small fills right before a launch, on its stream. It may count on what they leave: matrix
// products of cuBLAS take their tiles by a counter that is set to zero before each launch, and do
// nothing where it has reached the end.
std::vector<std::size_t> fills_before(const Tape& tape, std::size_t launch,
                                      const Manifest& manifest);

// Short, for people.
std::string kernel_name(std::uint32_t kernel, const Manifest& manifest);
// "a copy of 64 bytes to 0x7f0000000000 (call 77)", for people.
std::string description_of(const Step& step, const Manifest& manifest);

}  // namespace cudabpf::replay
