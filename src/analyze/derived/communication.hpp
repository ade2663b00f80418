// Which of a GPU's work is communication: what it does for a collective, and for which. Only here
// it is decided.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analyze/derived/calls_by_id.hpp"
#include "analyze/derived/classes_by_name.hpp"
#include "analyze/derived/graph_contents.hpp"
#include "analyze/derived/issuing_calls.hpp"
#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Communication {
 public:
  explicit Communication(const Names& names) : classes_(names) {}

  // A kernel of a collective is known by its name, so also without the collective's call. A copy is
  // one if a collective has made it.
  void follow(Line& line, GraphContents& graphs);

 private:
  // A call inside which collectives are carried out: one of them, or the end of a group. What a GPU
  // did is reported soon after.
  struct Asking {
    static constexpr std::size_t MAX = IssuingCall::MAX;
    std::uint64_t id = 0;
    AskedCollective collective;
  };
  struct Group {
    static constexpr std::size_t MAX = std::size_t{1} << 12;
    std::uint64_t id = 0;  // its number
    AskedCollective collective;
  };

  void call(const Line& line);
  bool holds_collectives(const LaunchedGraph& graph);

  ClassesByName classes_;
  CallsById<Asking> asking_;
  CallsById<Group> groups_;
  HashMap<std::uint64_t, bool> graphs_;  // by number: whether one of its kernels is a collective's
};

}  // namespace cudabpf::analyze
