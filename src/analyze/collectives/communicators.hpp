// The communicators of a trace. Each rank's has a number of its own; those of one communicator have
// the same identity, also in different processes and on different hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "trace/read/line.hpp"

namespace cudabpf::analyze {

// One rank's.
struct TracedCommunicator {
  std::uint64_t number = 0;
  std::uint32_t pid = 0;
  Name host;                              // in a merge of several hosts' traces
  std::optional<std::uint64_t> identity;  // nothing: it is not known which others belong to it
  std::optional<std::uint32_t> rank, ranks;
  std::optional<std::int64_t> device;
  // The one that it was made of, the how-manieth that was made of it, and the part that was asked
  // for, with the place there.
  std::uint64_t from = 0, ordinal = 0;
  std::optional<std::int64_t> color, key;
  bool late = false;             // it was there before its calls were recorded
  bool lost = false;             // records of its calls may be missing
  bool rank_worked_out = false;  // by those of the ranks that it was made of

  // Whether the numbers of its collectives are those that other ranks have for the same ones.
  bool is_counted_from_first() const { return identity && !late && !lost; }
};

class Communicators {
 public:
  using OfIdentity = std::vector<const TracedCommunicator*>;
  static constexpr std::size_t MAX = 1 << 16;

  explicit Communicators(std::size_t most = MAX) : most_(most) {}

  void line(const Line& line);
  // After the last line: the ranks of those that were split off, and say none themselves. Where all
  // ranks of the communicator that they were made of are there, they follow from color and key.
  void work_out_ranks();

  // Null: it is not known.
  const TracedCommunicator* find(std::uint64_t number) const;
  const std::map<std::uint64_t, TracedCommunicator>& all() const { return all_; }  // by number
  std::map<std::uint64_t, OfIdentity> by_identity() const;
  std::uint64_t left_out() const { return left_out_; }  // lines about more of them than are kept

 private:
  static constexpr int MAX_SPLITS = 16;  // of what was split off itself

  bool work_out(const OfIdentity& members, const std::set<std::uint64_t>& complete);

  std::size_t most_;
  std::map<std::uint64_t, TracedCommunicator> all_;
  std::uint64_t left_out_ = 0;
};

}  // namespace cudabpf::analyze
