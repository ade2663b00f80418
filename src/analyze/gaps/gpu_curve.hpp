// How busy a GPU was over time, for any stretch of it. Each piece is a time at work and the
// idle time after it; where there are too many, neighbours become one, within which what happened
// is taken to be spread evenly.
#pragma once

#include <cstdint>
#include <utility>

#include "analyze/gaps/idle_cause.hpp"
#include "analyze/gaps/measured_windows.hpp"
#include "analyze/merging.hpp"

namespace cudabpf::analyze {

class GpuCurve {
 public:
  struct Piece {
    std::uint64_t begin = 0, busy_until = 0, end = 0;
    std::uint64_t kernels = 0;  // ns in which a kernel ran
    IdleTimes idle;
    std::uint64_t busy = 0;  // in a piece of several, less than up to `busy_until`

    void merge(const Piece& next);
  };
  struct Share {
    std::uint64_t time = 0;  // of the stretch, as far as it was measured
    std::uint64_t busy = 0, kernels = 0;
    IdleTimes idle;  // before the first work and after the last there is no cause to show

    std::uint64_t idle_time() const { return time > busy ? time - busy : 0; }
    void add(const Share& other);
  };

  explicit GpuCurve(std::size_t most = MOST) : pieces_(most) {}

  // In the order of time.
  void add(const Piece& piece) { pieces_.add(piece); }
  // Only what lies in these was measured.
  void only_in(MeasuredWindows windows) { windows_ = std::move(windows); }
  Share between(std::uint64_t from, std::uint64_t to) const;

 private:
  static constexpr std::size_t MOST = 1 << 16;

  MergedSeries<Piece> pieces_;
  MeasuredWindows windows_;  // none: always
};

}  // namespace cudabpf::analyze
