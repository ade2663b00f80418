// What the ranks of each communicator did together: which one made the others wait, and whether all
// asked for the same. Everything is said of the ranks that were recorded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/collectives/collective_runs.hpp"
#include "analyze/collectives/exchanges.hpp"
#include "analyze/collectives/matches.hpp"
#include "analyze/collectives/skew.hpp"
#include "analyze/iterations/iterations.hpp"
#include "analyze/iterations/thread_work.hpp"

namespace cudabpf::analyze {

class Ranks : public Analysis {
 public:
  struct OfRank {
    std::uint32_t rank = 0;
    std::uint64_t communicator = 0;  // its number in the trace
    std::uint64_t process = 0;
    std::uint32_t pid = 0;
    Name host;
    std::uint64_t entered = 0,
                  last_seq = 0;  // collectives; those of a group, and of graphs, are one
    std::uint64_t last_ts = 0;
    std::optional<std::uint64_t> exited;  // ns, when its process had ended
  };
  struct OfCommunicator {
    std::uint64_t identity = 0;
    std::uint32_t ranks = 0;       // 0: not known
    std::vector<OfRank> recorded;  // by rank
    std::optional<Skew> skew;      // nothing: there is nothing to compare
    bool by_iterations = false;    // steps are iterations of the first rank that has any
    std::uint64_t per_step = 0;    // collectives, where steps are not iterations
    std::uint64_t step_time = 0;   // ns, of a usual iteration; 0: not known
    std::uint64_t incomplete = 0;  // collectives that not all recorded ranks have entered
    std::uint64_t after_loss = 0;  // left out, since records were lost before
    std::uint64_t at_set_up = 0;   // left out: the first, for which connections are made
    Exchanges::Books exchanges;
    bool knows_unmatched = false;  // what did not meet will not be met, as far as the trace goes
    std::string why_inconclusive;  // empty: it is not for this reason
    std::optional<Skew::Named> named;
    SkewVerdict verdict = SkewVerdict::inconclusive;
  };
  static constexpr std::size_t MAX_WAITS = 1 << 18;

  // Steps are the iterations of these threads, which must be finished first.
  Ranks(Names& names, const ThreadsAtWork& threads, Part part = {});

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  // Those with the most ranks first.
  const std::vector<OfCommunicator>& communicators() const { return communicators_; }
  // None if records were lost: what is missing would look like one.
  const Mismatches& mismatches() const { return mismatches_; }
  // For each kernel that waited for another rank, how long, as far as that is known.
  const std::vector<PeerWait>& waits() const { return waits_; }
  // Runs whose numbers are not those of other ranks: recording began later, or records were lost.
  std::uint64_t not_counted() const { return not_counted_; }
  std::uint64_t left_out() const {
    return matches_.left_out() + exchanges_.left_out() + waits_left_out_;
  }
  const std::string& lost() const { return lost_; }  // in words; empty: nothing
  const CollectiveRuns& runs() const { return runs_; }
  const Names& names() const { return names_; }

 private:
  using Members = std::vector<const Match*>;

  void take(const CollectiveRun& run);
  void lost(const Line& line);
  void take_losses(const TraceFacts& facts);
  void take_clocks(const TraceFacts& facts);
  void examine(const Communicators::OfIdentity& ranks, const Members& matches);
  bool is_twice(const OfCommunicator& of) const;
  void compare(OfCommunicator& of, const Communicators::OfIdentity& members, Members matches);
  void choose_times(OfCommunicator& of, const Members& matches) const;
  // The iterations of the first of the ranks that has some.
  std::uint64_t find_steps(OfCommunicator& of);
  std::optional<std::uint64_t> step_of(const Match& match, std::uint64_t of_process) const;
  void judge(OfCommunicator& of) const;

  Names& names_;
  Part part_;
  Name exit_;
  CollectiveRuns runs_;
  Matches matches_;
  Exchanges exchanges_;
  const ThreadsAtWork& threads_;
  std::map<std::uint64_t, OfRank> of_rank_;       // by the communicator's number
  std::map<std::uint64_t, std::uint64_t> exits_;  // by process
  Iterations iterations_;                         // of the communicator that is looked at
  std::vector<OfCommunicator> communicators_;
  Mismatches mismatches_;
  std::vector<PeerWait> waits_;
  std::uint64_t not_counted_ = 0, waits_left_out_ = 0;
  std::uint64_t certain_until_ = Part::OPEN;  // from then on, records may be missing
  std::string lost_;
  bool is_complete_ = false;  // what is not in the trace did not happen meanwhile
  bool knows_order_ = true;   // of events on different hosts, but for this error
  std::uint64_t order_error_ = 0;
};

Json ranks_json(const Ranks& ranks);
void add_ranks(Page& page, const Ranks& ranks, std::size_t at_most);

}  // namespace cudabpf::analyze
