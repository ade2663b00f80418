// How long GPUs took for what each thread asked of them, by when it asked: so the time of an
// iteration's work can be shown, whenever the GPU did it.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/analysis.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class IssuedGpuTime : public Analysis {
 public:
  // If there are more operations than this, each two that follow one another are counted as one,
  // asked for by the first's call; then each four.
  explicit IssuedGpuTime(std::size_t most = std::size_t{1} << 20) : most_(most) {}

  void line(const Line& line) override;
  void finish(const TraceFacts&) override;

  // What GPUs took for what that thread asked for from `begin` on, before `end`; kernels that ran
  // at the same time count in full.
  std::uint64_t between(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                        std::uint64_t end) const;
  bool measured() const { return !operations_.empty(); }

 private:
  static constexpr std::size_t MAX_THREADS = 1 << 14;

  struct Work {
    std::uint64_t asked = 0;  // ts of the call
    std::uint64_t time = 0;
    std::uint32_t thread = 0;  // as threads_ counts them
  };

  void sort();
  void merge();

  std::size_t most_;
  HashMap<std::uint64_t, std::uint32_t> threads_;  // by process and thread
  std::vector<Work> operations_;
};

}  // namespace cudabpf::analyze
