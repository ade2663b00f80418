// Sends and receives: which of them meet, and which kernels had to wait for each other.
//
// NCCL matches what a rank sends to another with what that one receives from it, in order, so the
// same number is the same transfer. A kernel may do several. Two kernels that meet in a transfer
// are partners. How long a kernel waited is told by its partners' times only where no other kernel
// can have delayed these: of kernels that are partners of each other, and of no others. They are an
// exchange if they are two, or if each receives from each other one, as in an all_to_all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "analyze/collectives/matches.hpp"

namespace cudabpf::analyze {

class Exchanges {
 public:
  static constexpr std::size_t MAX = 1 << 19;  // sends and receives

  // What became of a communicator's.
  struct Books {
    std::uint64_t operations = 0;        // sends and receives
    std::uint64_t several_partners = 0;  // runs, which are in no exchange for that
    std::uint64_t without_partner = 0;   // the same
    // By recorded ranks for recorded ranks. None if only sends were recorded, or only receives.
    std::uint64_t unmatched_sends = 0, unmatched_receives = 0;
  };
  struct Found {
    std::vector<Match> matches;
    Books books;
  };

  explicit Exchanges(std::size_t most = MAX) : most_(most) {}

  // Keeps those sends and receives of the run whose numbers are those of the other ranks.
  void add(const CollectiveRun& run, const Communicators& communicators);
  bool has_any_of(const Communicators::OfIdentity& members) const;
  // The members' ranks must be known, and differ.
  Found find(const Communicators::OfIdentity& members, Mismatches& mismatches);
  std::uint64_t left_out() const { return left_out_; }  // operations beyond the bound

 private:
  struct Run {
    Match match;                 // with this rank alone
    bool does_more = false;      // than sends and receives in one communicator
    bool lacks_partner = false;  // in a transfer
  };
  struct Operation {
    std::size_t run = 0;
    std::int64_t peer = 0;
    std::uint64_t seq = 0, launch = 0;
    std::uint64_t size = 0;
    bool receives = false, knows_size = false;
  };
  // One side of a transfer from a rank to another.
  struct Side {
    std::int64_t from = 0, to = 0;
    std::uint64_t communicator = 0;  // its number
    const Operation* operation = nullptr;
  };
  struct Transfer {
    Side sender, receiver;
  };
  // Runs that transfers connect.
  struct Group {
    std::vector<std::size_t> runs;
    std::set<std::pair<std::int64_t, std::int64_t>> received;  // from a rank by another
  };

  std::vector<Side> sides_of(const Communicators::OfIdentity& members) const;
  void meet(std::span<const Side> direction, std::vector<Transfer>& transfers,
            std::vector<Side>& unmatched);
  std::vector<Group> groups_of(const std::vector<Side>& sides,
                               const std::vector<Transfer>& transfers) const;
  bool is_exchange(const Group& group) const;
  void judge(const Group& group, Found& found) const;
  static void count_unmatched(const std::vector<Side>& unmatched,
                              const Communicators::OfIdentity& members, Books& books);

  std::size_t most_, kept_ = 0;
  std::vector<Run> runs_;
  std::map<std::uint64_t, std::vector<Operation>> operations_;  // by the communicator's number
  std::uint64_t left_out_ = 0;
};

}  // namespace cudabpf::analyze
