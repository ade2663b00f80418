// What a GPU's own counters (GPM) say of its tensor cores and its memory, beside what products must
// at least have asked of them: more than was counted cannot be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/time_buckets.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

class CountedActivity {
 public:
  struct Totals {
    double tensor_ns = 0, dram_ns = 0;  // how long each was active
    double doubt_ns = 0;                // samples are rounded
    double half_flop = 0, bytes = 0;    // of the products meanwhile, at least
  };

  // Also those outside of the part that is wanted.
  void sample(const GpuSample& sample);
  // A product ran on a GPU. `half_flop`: of those that tensor cores do, each by how many of half
  // precision take as long.
  void ran(std::uint64_t began, std::uint64_t ended, double half_flop, double bytes);

  // Nothing: no counters were read meanwhile, or not all the time, or of several GPUs.
  std::optional<Totals> totals() const;

 private:
  // The counters are behind: what happens may be in samples that are taken this much later.
  static constexpr std::uint64_t BEHIND = 150'000'000;  // ns
  static constexpr std::size_t MAX = 1 << 17;

  struct Needed {
    double half_flop = 0, bytes = 0;
    void merge(const Needed& next) {
      half_flop += next.half_flop;
      bytes += next.bytes;
    }
  };
  struct Window {
    std::uint64_t from = 0, to = 0;
    double tensor = 0, dram = 0;  // activity, in percent
  };

  TimeBuckets<Needed> needed_;          // when they ended
  std::uint64_t first_ = 0, last_ = 0;  // when products ran
  std::optional<std::uint32_t> gpu_;
  bool several_ = false;
  std::vector<Window> windows_;
};

}  // namespace cudabpf::analyze
