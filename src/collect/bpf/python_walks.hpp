// Python stacks of slow calls. A program in the kernel walks a thread's frames, and reads addresses
// alone (bpf/walk.h). Here what these stand for is read from the process, and each walk becomes the
// records by which stacks are known to all that follows (cudabpf/stacks.h).
//
// A process is looked at when it makes its first call, by the controlling thread, which alone may
// tell the kernel's side of it. Walks are taken by the reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/bpf/probe_set.hpp"
#include "collect/python/python_interpreter.hpp"
#include "cudabpf/source.hpp"
#include "cudabpf/stacks.h"
#include "cudabpf/walks.h"
#include "util/hash.hpp"
#include "util/system/event_fd.hpp"

namespace cudabpf {

class PythonWalks {
 public:
  explicit PythonWalks(ProbeSet& probes);

  // ----- by the controlling thread

  int fd() const { return wake_.get(); }  // readable when there are processes to look at
  void look();
  // The process is selected, and may be in the middle of its calls.
  void look_at_selected(std::uint32_t pid);
  void stop();  // nobody will look any more

  // ----- by the reader

  // Passes a record on, or what it makes of it.
  void take(std::span<const std::byte> record, const Source::OnRecord& pass);
  // Passes on what has been found since.
  void hand_over(const Source::OnRecord& pass);
  // How many more records it has passed on than the kernel has made.
  std::int64_t balance() const { return balance_; }

  // Slow calls without the stack that they should have.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  using Interpreter = std::shared_ptr<const PythonInterpreter>;
  struct Request {
    enum What : std::uint8_t { look, forget, refuse } what;
    std::uint32_t pid;
  };
  struct Found {
    std::uint32_t pid;
    bool refused;
    std::string text;
  };
  // Numbers are given as the library inside gives them.
  struct Stacks {
    HashMap<std::uint64_t, std::uint64_t> numbers;  // by what was walked
    std::vector<std::uint64_t> places;              // what has each place
    std::uint64_t numbered = 0;
  };

  void ask(Request request);
  bool look_at(std::uint32_t pid);  // whether it has Python
  void say(std::uint32_t pid, const PythonInterpreter& python);
  void refuse(std::uint32_t pid, std::string why);
  bool follow(std::uint32_t pid, const PythonInterpreter& python, const std::vector<Mapping>& maps);
  void set_state(std::uint32_t pid, abi::cb_python_state state);
  Interpreter known(std::uint32_t pid) const;
  void take_walk(const abi::cb_walk& walk, const Source::OnRecord& pass);
  void came_early(std::uint32_t pid);
  void pass_stack(const abi::cb_walk& walk, const Source::OnRecord& pass);
  std::uint64_t describe(const abi::cb_walk& walk, Stacks& stacks, std::uint64_t key,
                         const Source::OnRecord& pass);
  bool read_frames(const abi::cb_walk& walk, const PythonInterpreter& python);
  bool unchanged(const abi::cb_walk& walk) const;
  void pass(const Source::OnRecord& pass, const void* record, std::size_t size);
  void lose(std::uint64_t calls = 1) { lost_.fetch_add(calls, std::memory_order_relaxed); }

  ProbeSet& probes_;
  EventFd wake_;
  std::atomic<std::uint64_t> lost_{0};

  mutable std::mutex mutex_;  // for what both threads use
  std::deque<Request> requests_;
  std::deque<Found> found_;
  HashMap<std::uint32_t, Interpreter> interpreters_;  // also those that are refused
  HashMap<std::uint32_t, std::uint64_t> early_;       // walks of processes that are being looked at

  // Used by the reader.
  HashMap<std::uint32_t, Stacks> stacks_;
  std::size_t numbers_ = 0;            // of all these
  std::vector<std::uint64_t> record_;  // of a stack that is being described
  std::int64_t balance_ = 0;
};

}  // namespace cudabpf
