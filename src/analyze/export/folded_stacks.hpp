// Python's stacks as programs that draw flame graphs take them: a line each, from the outermost
// function inwards, and what it weighs. The last part is what was called, or the kernel that ran.
#pragma once

#include <string>

#include "analyze/export/byte_stream.hpp"
#include "analyze/stacks/stack_weights.hpp"

namespace cudabpf::analyze {

class FoldedStacks : public Analysis {
 public:
  FoldedStacks(Names& names, ByteStream& out, StackMeasure measure)
      : names_(names), out_(out), measure_(measure), weights_(names, measure) {}

  void line(const Line& line) override { weights_.line(line); }
  void finish(const TraceFacts& facts) override;

 private:
  std::string text_of(const PythonPlace* place) const;

  const Names& names_;
  ByteStream& out_;
  StackMeasure measure_;
  StackWeights weights_;
};

}  // namespace cudabpf::analyze
