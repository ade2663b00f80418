// Cuts the time in which a GPU works into pieces, in each of which the same kinds of work run all
// the time: so it is exact what ran in a stretch that begins or ends anywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "analyze/gaps/busy.hpp"
#include "analyze/gaps/gpu_curve.hpp"

namespace cudabpf::analyze {

class WorkPieces {
 public:
  // Work begins after an idle time.
  void begin(std::uint64_t ts) { since_ = ts; }
  // More begins at `until`; `whole` is all that began before.
  void cut(const Busy& whole, std::uint64_t until, GpuCurve& curve) {
    while (since_ < until) {
      std::uint64_t end = whole.next_end(since_, until);
      WorkTime now = whole.times_until(end);
      add({since_, end, end, now - before_, {}}, curve);
      before_ = now;
      since_ = end;
    }
  }
  // Nothing runs from `end` on: the last piece. Those before it are in the curve.
  GpuCurve::Piece take(const Busy& whole, std::uint64_t end, GpuCurve& curve) {
    cut(whole, end, curve);
    return std::exchange(last_, std::nullopt).value_or(GpuCurve::Piece{end, end, end, {}, {}});
  }

 private:
  static bool ran(const GpuCurve::Piece& piece, std::uint64_t WorkTime::*time) {
    return piece.work.*time;
  }
  void add(const GpuCurve::Piece& piece, GpuCurve& curve) {
    bool is_same =
        last_ && std::all_of(std::begin(WORK_TIMES), std::end(WORK_TIMES),
                             [&](auto time) { return ran(*last_, time) == ran(piece, time); });
    if (is_same) return last_->merge(piece);
    if (last_) curve.add(*last_);
    last_ = piece;
  }

  std::uint64_t since_ = 0;  // what is not cut yet
  WorkTime before_;          // until then
  std::optional<GpuCurve::Piece> last_;
};

}  // namespace cudabpf::analyze
