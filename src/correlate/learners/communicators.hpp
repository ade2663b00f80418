// NCCL's communicators: which there are, which rank has each, and how many operations were given to
// each, by what the calls themselves say; nothing is read from NCCL's memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "cudabpf/event.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class Communicators : public Learner {
 public:
  explicit Communicators(Bounds& bounds) : bounds_(bounds) {}

  // Fills in the communicator and the sequence number, and the group.
  void began(ThreadId thread, Frame& frame) {
    if (frame.function->layer() > 0) begin(thread, frame);
  }
  void ended(const CallStack& stack, Call& call) {
    if (call.function->layer() > 0) end(stack.top(), call);
  }
  void records_lost(ThreadId thread);
  void thread_gone(ThreadId thread) { groups_.erase(thread); }
  void process_gone(std::uint32_t pid);

 private:
  using Ptr = std::shared_ptr<Communicator>;
  // Operations between two ranks, of one kind and with one peer.
  using Pair = std::pair<Op, std::int32_t>;

  struct Known {
    Ptr communicator;
    std::uint64_t collectives = 0;  // that were given to it
    std::uint64_t children = 0;     // that were made of it
    std::map<Pair, std::uint64_t> pairs;
  };
  struct Group {
    std::uint64_t number = 0;
    std::uint32_t depth = 0;
  };
  using OfProcess = HashMap<std::uint64_t, Known>;  // by handle

  void begin(ThreadId thread, Frame& frame);
  void end(const Frame& frame, Call& call);
  Known* known(std::uint32_t pid, std::uint64_t handle);
  // Null: there is no room for it.
  Known* add(std::uint32_t pid, std::uint64_t handle, const Communicator& made);
  std::uint64_t* count_of(Known& of, const Frame& frame);
  void follow_group(const Call& call);
  // `parent`: the communicator of which it was made, if it was.
  void made(Call& call, const Known* parent);
  void made_all(Call& call);
  void told(Known& of, const Call& call);
  void forget(const Frame& frame, std::uint32_t pid, std::uint64_t handle);

  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::map<ThreadId, Group> groups_;  // that are open
  std::size_t kept_ = 0;              // communicators, and their pairs
  std::uint64_t next_number_ = 1, next_group_ = 1;
  std::vector<const Communicator*> made_;  // by the call that has just ended, which made several
};

}  // namespace cudabpf
