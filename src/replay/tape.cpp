#include "replay/tape.hpp"

#include <fmt/format.h>

#include <cstring>

#include "util/demangle/demangle.hpp"

namespace cudabpf::replay {

namespace {

// A million kernels are more than any iteration has; a hostile graph may have a million nodes, and
// be launched a million times.
constexpr std::size_t MAX_STEPS = std::size_t{1} << 20;

std::string place_of(const bundle::Place& place) {
  return place.address ? fmt::format("{:#x}", place.address->value) : std::string("the host");
}

std::string work_of(const Step& step, const Manifest& manifest) {
  if (step.launch) return kernel_name(step.launch->kernel, manifest);
  if (step.copy)
    return fmt::format("a copy of {} bytes from {} to {}", step.copy->rows.bytes(),
                       place_of(step.copy->from), place_of(step.copy->to));
  if (step.set)
    return fmt::format("a fill of {} bytes at {}", step.set->rows.bytes(), place_of(step.set->to));
  return fmt::format("a {}", bundle::ACTIONS[static_cast<std::size_t>(step.action)]);
}

// All memory that the program has at any time, merged.
std::vector<Range> memory_of(const Manifest& manifest,
                             const std::vector<bundle::Operation>& operations) {
  std::vector<Range> all;
  for (const bundle::Block& block : manifest.blocks) all.push_back(range_of(block));
  for (const bundle::Module& module : manifest.modules)
    for (const bundle::Variable& variable : module.variables) all.push_back(range_of(variable));
  for (const bundle::Operation& operation : operations)
    if (operation.action == Action::alloc) all.push_back(range_of(*operation.memory));
  return merged(std::move(all));
}

void clear_addresses(std::string& parameters, const std::vector<Range>& memory) {
  std::uint64_t word = 0;
  for (std::size_t at = 0; at + sizeof(word) <= parameters.size(); at += sizeof(word)) {
    std::memcpy(&word, parameters.data() + at, sizeof(word));
    if (have(memory, {word, word + 1})) std::memset(parameters.data() + at, 0, sizeof(word));
  }
}

}  // namespace

Result<> Tape::compare_parameters(const bundle::Folder& folder) {
  std::vector<Range> memory = memory_of(folder.manifest(), operations_);
  for (Step& step : steps_) {
    if (!step.launch || !step.launch->parameters.size) continue;
    std::string parameters = TRY(folder.data(step.launch->parameters));
    clear_addresses(parameters, memory);
    step.scalars = std::hash<std::string>{}(parameters);
  }
  return ok();
}

Result<> Tape::add_graph(const bundle::Operation& operation,
                         std::vector<const bundle::Operation*>& nodes_of) {
  const bundle::Operation*& known = nodes_of[*operation.graph];
  if (!operation.nodes.empty() || !known) known = &operation;
  graph_launches_++;
  if (known->nodes.size() > MAX_STEPS - steps_.size())
    return Error{"the tape has more work than a replay does", {}};
  for (const bundle::GraphNode& node : known->nodes) {
    Step step{Action::launch, &operation};
    if (node.launch) step.launch = &*node.launch;
    if (node.copy) step.action = Action::copy, step.copy = &*node.copy;
    if (node.set) step.action = Action::set, step.set = &*node.set;
    steps_.push_back(step);
  }
  return ok();
}

Result<Tape> Tape::read(bundle::Folder& folder) {
  Tape tape;
  while (auto operation = TRY(folder.next())) {
    if (tape.operations_.size() == MAX_STEPS)
      return Error{"the tape has more operations than a replay does", {}};
    tape.operations_.push_back(std::move(*operation));
  }
  if (folder.manifest().graphs > MAX_STEPS)
    return Error{"the capture has more graphs than a replay runs", {}};
  std::vector<const bundle::Operation*> nodes_of(folder.manifest().graphs);
  for (const bundle::Operation& operation : tape.operations_) {
    if (operation.action == Action::graph) {
      TRY(tape.add_graph(operation, nodes_of));
      continue;
    }
    Step step{operation.action, &operation};
    if (operation.launch) step.launch = &*operation.launch;
    if (operation.copy) step.copy = &*operation.copy;
    if (operation.set) step.set = &*operation.set;
    tape.steps_.push_back(step);
  }
  TRY(tape.compare_parameters(folder));
  return tape;
}

std::string refusal_of(const Step& step, const Manifest& manifest) {
  if (step.operation->refused) return *step.operation->refused;
  if (step.launch) return manifest.kernels[step.launch->kernel].refused.value_or("");
  return {};
}

std::vector<std::size_t> fills_before(const Tape& tape, std::size_t launch,
                                      const Manifest& manifest) {
  constexpr std::uint64_t MAX_BYTES = 64 << 10;  // larger ones would be timed more than the launch
  constexpr std::size_t MAX = 16;
  const std::vector<Step>& steps = tape.steps();
  std::vector<std::size_t> fills;
  for (std::size_t i = launch; i-- > 0 && fills.size() < MAX;) {
    if (steps[i].stream() != steps[launch].stream()) continue;
    if (steps[i].launch || steps[i].copy) break;
    if (steps[i].set && steps[i].set->rows.bytes() <= MAX_BYTES &&
        refusal_of(steps[i], manifest).empty())
      fills.insert(fills.begin(), i);
  }
  return fills;
}

std::string kernel_name(std::uint32_t kernel, const Manifest& manifest) {
  return short_name(demangle(manifest.kernels[kernel].name));
}

std::string description_of(const Step& step, const Manifest& manifest) {
  return fmt::format("{} (call {})", work_of(step, manifest), step.operation->call);
}

}  // namespace cudabpf::replay
