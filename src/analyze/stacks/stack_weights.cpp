#include "analyze/stacks/stack_weights.hpp"

#include "util/saturating.hpp"

namespace cudabpf::analyze {

void StackWeights::line(const Line& line) {
  kernels_.line(line);
  if (line.kind == LineKind::call) return call(line);
  if (line.kind == LineKind::gpu_operation)
    add(StackMeasure::gpu, line, line.kernel ? line.kernel : line.op, line.duration);
}

void StackWeights::call(const Line& line) {
  if (!line.has(Field::parent) && !line.has(Field::within))
    add(StackMeasure::host, line, line.name, line.duration);
  if (gives_work(line.work)) add(StackMeasure::copied, line, line.name, line.size);
  bool succeeded = line.has(Field::ret) && !line.failed();
  if (line.meaning->memory == MemoryEffect::alloc && succeeded)
    add(StackMeasure::allocated, line, line.name, line.size);
}

void StackWeights::add(StackMeasure measure, const Line& line, Name what, std::uint64_t weight) {
  if (!weight || (only_ && measure != *only_)) return;
  std::uint64_t& sum = weights_[static_cast<std::size_t>(measure)][{line.python, what.id}];
  sum = saturating_sum(sum, weight);
}

std::vector<StackWeights::Weighed> StackWeights::of(StackMeasure measure) const {
  std::vector<Weighed> all;
  for (const auto& [key, weight] : weights_[static_cast<std::size_t>(measure)]) {
    std::string kernel = measure == StackMeasure::gpu ? kernels_.of({key.what}) : std::string();
    all.push_back({key.place,
                   kernel.empty() ? std::string(names_.text({key.what})) : std::move(kernel),
                   weight});
  }
  return all;
}

}  // namespace cudabpf::analyze
