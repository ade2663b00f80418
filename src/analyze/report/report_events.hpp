// The events of a report's timeline: each by itself, as long as a browser can hold them. Where
// there are more, short ones that began close together become one, which says how many it stands
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace cudabpf::analyze {

struct ReportEvent {
  static constexpr std::size_t MAX = std::size_t{3} << 19;  // in all rows
  static constexpr unsigned FINEST = 8, COARSEST = 63;
  static constexpr bool MERGES_AT_ONCE = true;

  std::uint64_t begin = 0, end = 0;  // ns
  std::uint64_t id = 0;              // of the call; of work and operations, the call behind them
  std::uint64_t busy = 0;            // ns, the sum of the durations of those that it stands for
  std::uint64_t longest = 0;         // ns, of the one that `kind` is of
  std::uint32_t kind = 0, details = 0, stream = 0;
  std::uint32_t count = 1;

  std::uint64_t time() const { return end - begin; }
  static bool comes_before(const ReportEvent& a, const ReportEvent& b) {
    return std::tuple(a.begin, b.end, a.id) < std::tuple(b.begin, a.end, b.id);
  }
  // Those that began in the same 2^resolution ns are one, if they are short.
  static bool are_one(const ReportEvent& a, const ReportEvent& b, unsigned resolution);
  void absorb(const ReportEvent& next);
};

using ReportRow = std::vector<ReportEvent>;

}  // namespace cudabpf::analyze
