// How busy a GPU was over time, to ask of any stretch of it. Each piece is a time at work and the
// idle time after it; where there are too many, neighbours become one, within which what happened
// is taken to be spread evenly.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/course/idle_cause.hpp"

namespace cudabpf::analyze {

class GpuCurve {
 public:
  struct Piece {
    std::uint64_t begin = 0, busy_until = 0, end = 0;
    std::uint64_t kernels = 0;  // ns in which a kernel ran
    IdleTimes idle;
    std::uint64_t busy = 0;  // less than up to `busy_until` in a piece of several
  };
  struct Share {
    std::uint64_t time = 0;  // of the stretch
    std::uint64_t busy = 0, kernels = 0;
    IdleTimes idle;  // before the first work and after the last there is no cause to be told

    std::uint64_t idle_time() const { return time > busy ? time - busy : 0; }
    void add(const Share& other);
  };

  explicit GpuCurve(std::size_t most = MOST) : most_(most) {}

  // In the order of time.
  void add(const Piece& piece);
  Share between(std::uint64_t from, std::uint64_t to) const;
  bool is_coarse() const { return times_ > 1; }

 private:
  static constexpr std::size_t MOST = 1 << 16;
  static Piece joined(const Piece& a, const Piece& b);
  void halve();

  std::size_t most_;
  std::vector<Piece> pieces_;
  std::size_t times_ = 1, in_last_ = 0;  // how many become one; how many did in the last
};

}  // namespace cudabpf::analyze
