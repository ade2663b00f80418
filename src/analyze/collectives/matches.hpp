// What the ranks of a communicator did together: the runs of collectives that have the same number
// there. No clock is needed for that, since all ranks count alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "analyze/collectives/collective_runs.hpp"
#include "analyze/collectives/mismatches.hpp"

namespace cudabpf::analyze {

// A rank's part in a collective.
struct MatchedRank {
  std::uint64_t communicator = 0;  // its number, which says which rank it is
  std::uint64_t process = 0;
  std::uint64_t ts = 0, end = 0;  // on the host: when it entered, and when it was queued
  OnGpu gpu;
};

struct Match {
  std::uint64_t identity = 0, seq = 0, launch = 0;  // `seq`: of the first, if several ran together
  Name op;
  std::int64_t root = -1;
  bool is_barrier = false;   // none can be done before all have come
  bool is_first = false;     // connections are made for it
  bool is_exchange = false;  // of sends and receives, and nothing else
  std::vector<MatchedRank> ranks;
};

class Matches {
 public:
  struct Bounds {
    std::size_t open = 1 << 16;   // of which ranks may still come
    std::size_t ranks = 1 << 19;  // in all that are kept
    std::size_t mismatches = Mismatches::MAX;
  };

  Matches(const Names& names, Bounds bounds)
      : names_(names), bounds_(bounds), mismatches_(bounds.mismatches) {}
  explicit Matches(const Names& names) : Matches(names, Bounds()) {}

  // One whose numbers are those of the other ranks.
  void add(const CollectiveRun& run, const TracedCommunicator& communicator);
  void finish();

  // In the order of their numbers, communicator by communicator. Those of one rank are there, too.
  const std::vector<Match>& all() const { return all_; }
  const Mismatches& mismatches() const { return mismatches_; }
  std::uint64_t left_out() const { return left_out_; }  // ranks' parts, beyond the bounds

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  // What the first rank asked for.
  struct Asked {
    CollectiveCall call;
    std::uint64_t communicator = 0;
  };

  void compare(const CollectiveCall& call, std::uint64_t identity);
  void differ(const CollectiveCall& call, const Asked& first, std::uint64_t identity);
  void close_first();

  const Names& names_;
  Bounds bounds_;
  std::map<Key, Match> open_;
  std::deque<Key> opened_;                                          // in their order
  std::map<std::pair<std::uint64_t, std::uint64_t>, Asked> asked_;  // by identity and seq
  std::deque<std::pair<std::uint64_t, std::uint64_t>> asked_order_;
  std::vector<Match> all_;
  Mismatches mismatches_;
  std::uint64_t left_out_ = 0;
  std::size_t ranks_ = 0;
};

}  // namespace cudabpf::analyze
