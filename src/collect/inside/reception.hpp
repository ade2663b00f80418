// Answers traced processes that come to the door: what to record, and into which memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/inside/door.hpp"
#include "collect/inside/planned_library.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/inside.h"

namespace cudabpf {

// A process that has said hello.
struct Arrival {
  pid_t pid = 0;
  abi::ci_hello hello{};
};

class Reception {
 public:
  // Whether the process is traced, and the descriptor of its room if it needs one (else -1).
  struct Admission {
    bool traced = false;
    int room = -1;
    bool failed = false;  // it was to be
  };
  using Admit = std::function<Admission(const Arrival& arrival)>;
  using Depart = std::function<void(const Arrival& leaving)>;

  struct Wanted {
    bool calls = true;
    std::uint32_t gpu = 0;  // abi::cb_gpu_times_of
    std::uint64_t room_size = 0;
  };

  Reception(Door door, PlannedLibraries& libraries, const std::vector<std::string>& named,
            Admit admit, Depart depart, Wanted wanted);

  std::vector<int> watch_fds() const;  // readable when there is something to do
  // Does it. Libraries whose functions have been patched for the first time are added.
  void look(std::vector<Library>& patched);
  // Nobody is let in any more.
  void close() { closed_ = true; }
  // Processes that came to be recorded, and are not.
  std::uint64_t unrecorded() const { return unrecorded_; }

 private:
  struct Visit {
    Visitor visitor;
    std::uint64_t give_up_ns = 0;
    bool answered = false;
    bool admitted = false;
    pid_t tracer = 0;                       // a process that debugs it; 0: none
    std::optional<PlannedLibrary> library;  // without its descriptor
  };

  // True if the visit is over.
  bool go_on(Visit& visit, std::vector<Library>& patched);
  bool answer(Visit& visit, const abi::ci_hello& hello, const std::vector<Fd>& files);
  void note(const Visit& visit, const abi::ci_done& done, std::vector<Library>& patched);
  void note_impatience(const Visit& visit);
  void leave_unrecorded(pid_t pid, const std::string& why);

  Door door_;
  PlannedLibraries& libraries_;
  std::vector<FileId> named_;  // files that the user says are libcuda
  Admit admit_;
  Depart depart_;
  const Wanted wanted_;
  bool closed_ = false;
  std::atomic<std::uint64_t> unrecorded_ = 0;
  std::list<Visit> visits_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> told_;  // devices and inodes of libraries
};

}  // namespace cudabpf
