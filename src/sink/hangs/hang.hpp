// A hang: what is known of it, and what may be concluded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "state/rank_positions.hpp"

namespace cudabpf::hangs {

using ranks::Entered;
using ranks::Member;
using ranks::Positions;

enum class Kind : std::uint8_t {
  waiting,        // a call takes long, and no collective is behind it
  all_entered,    // every rank that is recorded has entered the same collectives
  missing_enter,  // some rank has not entered what others have
  mismatch,       // ranks entered different collectives under one number
  group_open,     // a rank has begun a group and not ended it
  stopped,        // the rank that is missing is stopped
  gone,           // or has ended
  making,         // ranks have not come, here, to make the communicator
  missing_peer,   // a send without its receive, or the other way round
  unknown,        // calls may be missing, so nobody is named
};

constexpr std::string_view to_string(Kind kind) {
  constexpr std::string_view NAMES[] = {"waiting",      "all_entered", "missing_enter", "mismatch",
                                        "group_open",   "stopped",     "gone",          "making",
                                        "missing_peer", "unknown"};
  return NAMES[static_cast<std::size_t>(kind)];
}

struct OpenCall {
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t id = 0;
  const Function* function = nullptr;
  std::uint64_t open_ns = 0;
};

// What a process does.
struct Doing {
  std::uint32_t pid = 0;
  std::string name;
  char state = 0;  // as /proc has it: S, R, D, T; 0: not known
  bool gone = false;
  std::optional<int> exit_code, signal;
  std::optional<OpenCall> open;                  // the one that has been open longest
  std::string kernel;                            // that it launched last
  std::uint64_t launched_ts = 0, called_ts = 0;  // its last launch, and the end of its last call

  bool is_stopped() const { return state == 'T' || state == 't'; }
};

struct RankState {
  std::optional<std::int32_t> rank;
  std::uint32_t pid = 0;
  std::uint64_t sequence = 0;  // of the last collective that it entered
  std::optional<Entered> at;   // that one
  ranks::Replayed replayed;
  bool behind = false;       // others have entered, or launched, what it has not
  bool named = false;        // it is what the others wait for
  Kind why = Kind::waiting;  // of one that is named
};

// What holds in one communicator.
struct Stuck {
  std::uint64_t identity = 0;
  std::optional<std::int32_t> ranks;
  Kind kind = Kind::all_entered;
  std::uint64_t sequence = 0;   // of the collective that it is about
  bool in_graphs = false;       // it is about launches of graphs that hold collectives
  bool graphs_unknown = false;  // a process launched graphs that may hold any
  std::vector<RankState> members;
  bool waits = false;                // a process of it waits
  std::vector<std::int32_t> absent;  // of `making`: the ranks that have not come, here
};

struct Hang {
  std::uint64_t ts = 0;
  std::uint64_t longest_ns = 0;  // of the calls that are open
  Kind kind = Kind::waiting;
  std::vector<Stuck> communicators;  // the one that it is about first
  std::vector<Doing> processes;
  std::uint64_t lost = 0;  // calls that may be missing
};

// What the processes do, at most one for each pid.
using Doings = std::map<std::uint32_t, Doing>;

// What may be concluded. `overdue_ns`: how long a call must be open, or a rank behind.
Hang judge(const Positions& positions, const Doings& doings, std::uint64_t now,
           std::uint64_t overdue_ns, std::uint64_t lost);

// Whether a rank has been behind the others of a communicator for so long.
bool is_any_behind(const Positions& positions, std::uint64_t now, std::uint64_t overdue_ns);

}  // namespace cudabpf::hangs
