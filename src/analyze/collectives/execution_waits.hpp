// Tells an execution for how long collectives on its GPUs waited for other ranks.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/collectives/ranks.hpp"
#include "analyze/iterations/execution.hpp"

namespace cudabpf::analyze {

class ExecutionWaits : public Analysis {
 public:
  // Must finish after the execution.
  ExecutionWaits(Names& names, Execution& execution, Part part = {})
      : names_(names), execution_(execution), part_(part) {}

  // Where there is no communicator, there is nothing to compare.
  void line(const Line& line) override {
    if (!ranks_ && line.kind == LineKind::communicator)
      ranks_.emplace(names_, execution_.threads(), part_);
    if (ranks_) ranks_->line(line);
  }
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override {
    if (!ranks_) return;
    ranks_->finish(facts);
    std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<WaitForRank>> by_gpu;
    // Ranks that nothing delays also come one after the other: that is no one's fault.
    for (const PeerWait& wait : ranks_->waits())
      if (wait.time() > Skew::NOISE)
        by_gpu[{wait.process, wait.device}].push_back({wait.begin, wait.end, wait.awaited});
    for (auto& [gpu, waits] : by_gpu) execution_.set_waits(gpu.first, gpu.second, std::move(waits));
    ranks_.reset();
  }

 private:
  Names& names_;
  Execution& execution_;
  Part part_;
  std::optional<Ranks> ranks_;
};

}  // namespace cudabpf::analyze
