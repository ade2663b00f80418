// How far each rank of each communicator has come: the collectives that it has entered, by number.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cudabpf/event.hpp"
#include "util/hash.hpp"

namespace cudabpf::ranks {

// A collective that a rank has entered.
struct Entered {
  std::uint64_t sequence = 0;
  std::uint64_t call = 0;  // its id
  std::uint64_t ts = 0;
  std::uint64_t group = 0;
  Op op = Op::none;
  std::optional<std::uint64_t> count;
  std::optional<std::uint32_t> datatype, reduction;
  std::optional<std::int32_t> root;

  // Whether ranks that enter it as the same collective agree on it.
  bool agrees_with(const Entered& other) const;
};

// The collectives of its communicator that a rank has done by launching graphs.
struct Replayed {
  std::uint64_t collectives = 0, launches = 0;
  std::uint64_t ts = 0;  // of the last launch
};

struct Member {
  std::uint32_t pid = 0;
  Communicator of;
  std::deque<Entered> last;  // the last ones, in order
  bool ended = false;        // the program has destroyed it
  // Operations between two ranks, by kind and peer: how many.
  std::map<std::pair<Op, std::int32_t>, std::uint64_t> pairs;
  Replayed replayed;

  std::uint64_t sequence() const { return last.empty() ? 0 : last.back().sequence; }
  const Entered* find(std::uint64_t sequence) const;
};

// A rank that is in the call that makes its communicator. All ranks must come to it before any
// returns.
struct Making {
  std::uint32_t pid = 0;
  std::uint64_t ts = 0;
  std::optional<std::int32_t> rank, ranks;
};

class Positions {
 public:
  // The collectives that are kept of a rank, to compare them with others'.
  static constexpr std::size_t LAST = 64;
  static constexpr std::size_t MAX_MEMBERS = 1 << 14;
  static constexpr std::size_t MAX_CAPTURED = 1 << 18;  // collectives, of all graphs

  // Whether calls of this function are to be noted.
  static bool concerns(const Function& function) {
    return function.layer() > 0 || function.launches_graph();
  }
  // A call of NCCL, or one that launched a graph, that has ended, or is open.
  void note(const Call& call, bool open);
  // Those that are open are noted anew.
  void begin_open() { making_.clear(); }
  // By the identity that the communicator will have.
  const std::multimap<std::uint64_t, Making>& making() const { return making_; }
  void process_gone(std::uint32_t pid);

  // By identity, and by number: the ranks of a communicator whose calls are recorded here.
  using Members = std::map<std::uint64_t, Member>;
  const std::map<std::uint64_t, Members>& communicators() const { return communicators_; }
  // Those whose other ranks are not known, since they were made before: by number.
  const Members& late() const { return late_; }
  // A rank that has not entered what others of its communicator have, or not launched their graphs,
  // and since when: the first of these did so then. Without those of which calls may be missing.
  struct Behind {
    std::uint32_t pid = 0;
    std::uint64_t since = 0;
  };
  std::vector<Behind> behind() const;
  // The process has begun a group and not ended it.
  bool has_open_group(std::uint32_t pid, std::uint64_t group) const;
  // Whether it is known what was in the graphs that these ranks' processes launched.
  bool knows_graphs(const Members& members) const;
  bool left_out() const { return left_out_; }  // there was no room for some

 private:
  Member* member_of(const Communicator& of);
  void enter(Member& member, const Call& call, bool open);
  void launch_graph(const Call& call);
  void follow_group(const Call& call);

  std::map<std::uint64_t, Members> communicators_;
  Members late_;
  std::multimap<std::uint64_t, Making> making_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> groups_;  // how deep they are
  struct Captured {
    std::uint64_t identity = 0, number = 0;  // of its communicator
    std::uint32_t pid = 0;
  };
  HashMap<std::uint64_t, Captured> captured_;  // collectives, by their calls
  std::set<std::uint32_t> unknown_graphs_;     // processes that launched graphs that may hold any
  std::size_t members_ = 0;
  bool left_out_ = false;
};

// The number of the collective that some member has entered and none has come beyond.
std::uint64_t furthest(const Positions::Members& members);
// The most collectives that a member has done in graphs.
std::uint64_t most_replayed(const Positions::Members& members);
// Calls of some member may be missing.
bool is_uncertain(const Positions::Members& members);

}  // namespace cudabpf::ranks
