// Where in its Python a program makes calls. Each process describes a stack once, under a number of
// its own, and forgets it when it needs the room; what is described alike has one number in the
// trace, in whatever process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "correlate/calls/open_calls.hpp"
#include "correlate/calls/open_trace.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/record.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class Stacks : public Learner {
 public:
  Stacks(OpenTrace& trace, OpenCalls& open, Bounds& bounds)
      : trace_(trace), open_(open), bounds_(bounds) {}

  void on_record(const Record& record);
  void began(ThreadId thread, Frame& frame) {
    if (frame.stack_number) frame.stack = find(thread.pid, frame.stack_number);
  }
  void process_gone(std::uint32_t pid);

  // Calls with a stack that is not known.
  std::uint64_t missed() const { return missed_; }

 private:
  using Stack = std::shared_ptr<const PythonStack>;
  using Function = std::shared_ptr<const PythonFunction>;

  // A thread may take a number just before another gives its place to a new stack.
  struct Described {
    std::uint64_t number = 0;
    Stack stack;
  };
  using Place = std::array<Described, 2>;  // the last ones, the newer first
  using OfProcess = std::unordered_map<std::uint32_t, Place>;

  struct HashFunction {
    std::size_t operator()(const Function& one) const {
      return hash_of(hash_of(one->name), hash_of(one->file));
    }
  };
  struct SameFunction {
    bool operator()(const Function& a, const Function& b) const {
      return a->name == b->name && a->file == b->file;
    }
  };
  struct HashStack {
    std::size_t operator()(const Stack& one) const;
  };
  struct SameStack {
    bool operator()(const Stack& a, const Stack& b) const {
      return a->frames == b->frames && a->cut == b->cut && a->text_cut == b->text_cut;
    }
  };

  void describe(const Record& record);
  void found_python(const Record& record);
  void give_stack(const Record& record);
  // Nothing: it is not known, which is counted.
  Stack find(std::uint32_t pid, std::uint64_t number);
  // These are one for all that are equal. Nothing: there is no room.
  Stack stack_of(const Record& record);
  Function function_of(const StackFrame& frame);
  bool has_room();

  OpenTrace& trace_;
  OpenCalls& open_;
  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::size_t described_ = 0;  // places of all processes
  std::unordered_set<Function, HashFunction, SameFunction> functions_;
  std::unordered_set<Stack, HashStack, SameStack> stacks_;
  std::uint64_t next_number_ = 1, missed_ = 0, refused_ = 0;
};

}  // namespace cudabpf
