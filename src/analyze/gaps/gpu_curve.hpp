// How busy a GPU was over time, for any stretch of it. Each piece is a time at work and the
// idle time after it; where there are too many, neighbours become one, within which what happened
// is taken to be spread evenly.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analyze/gaps/busy.hpp"
#include "analyze/gaps/idle_cause.hpp"
#include "analyze/gaps/measured_windows.hpp"
#include "analyze/gaps/waits_for_ranks.hpp"
#include "analyze/merging.hpp"

namespace cudabpf::analyze {

class GpuCurve {
 public:
  struct Piece {
    std::uint64_t begin = 0, busy_until = 0, end = 0;
    WorkTime work;  // in a piece of several it was busy for less than up to `busy_until`
    IdleTimes idle;

    void merge(const Piece& next);
  };
  struct Share : WorkTime {
    std::uint64_t time = 0;  // of the stretch, as far as it was measured
    IdleTimes idle;          // before the first work and after the last there is no cause to show
    TimeByRank waiting;      // of the exposed time, as far as it is known

    std::uint64_t idle_time() const { return time > busy ? time - busy : 0; }
    void add(const Share& other);
  };

  explicit GpuCurve(std::size_t most = MAX) : pieces_(most) {}

  // In the order of time.
  void add(const Piece& piece) { pieces_.add(piece); }
  // Only what lies in these was measured.
  void only_in(MeasuredWindows windows) { windows_ = std::move(windows); }
  // What its collectives waited for. Where several wait at once, the first counts. Returns how many
  // were too many to be kept.
  std::uint64_t waited(std::vector<WaitForRank> waits);
  Share between(std::uint64_t from, std::uint64_t to) const;

 private:
  struct Waiting : WaitForRank {
    std::uint64_t exposed = 0;  // ns of it in which only collectives ran
  };
  static constexpr std::size_t MAX_WAITS = 1 << 17;

  static constexpr std::size_t MAX = 1 << 16;

  MergedSeries<Piece> pieces_;
  MeasuredWindows windows_;  // none: always
  std::vector<Waiting> waits_;
};

}  // namespace cudabpf::analyze
