// GPU time of each thread's work, by when the thread issued it: so the time of an iteration's work
// can be shown, whenever the GPU did it.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/analysis.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class IssuedGpuTime : public Analysis {
 public:
  // If there are more operations than this, neighbours are counted in pairs, as issued by the first
  // one's call; then in fours.
  explicit IssuedGpuTime(std::size_t most = std::size_t{1} << 20) : most_(most) {}

  void line(const Line& line) override;
  void finish(const TraceFacts&) override;

  // GPU time of what that thread issued from `begin` on, before `end`; kernels that ran at the same
  // time count in full.
  std::uint64_t between(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                        std::uint64_t end) const;
  bool measured() const { return !operations_.empty(); }

 private:
  static constexpr std::size_t MAX_THREADS = 1 << 14;

  struct Work {
    std::uint64_t issued = 0;  // ts of the call
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
