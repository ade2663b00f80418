// The processes that are recorded from inside, and their records, in the order of time. All of it
// belongs to the reading thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collect/inside/record_clock.hpp"
#include "collect/inside/shared_rings.hpp"
#include "collect/inside/thread_ids.hpp"
#include "cudabpf/abi.h"
#include "cudabpf/source.hpp"
#include "cudabpf/thread_id.hpp"
#include "util/hash.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// A process that has got shared memory.
struct Newcomer {
  abi::cb_process record{};     // its start, fork or exec, as it is to be reported
  std::uint32_t inner_pid = 0;  // the process's id in its own pid namespace
  Fd pidfd;                     // none: the kernel has no pidfds
  std::shared_ptr<SharedRings> shared;
};

class TracedRings {
 public:
  using OnRecord = std::function<void(std::span<const std::byte> record)>;

  // Without `reports_processes`, another source records when processes and threads begin and end.
  // `clock`: that of all rings.
  TracedRings(bool reports_processes, abi::ci_clock clock)
      : reports_processes_(reports_processes), clock_(clock) {}

  // A program that was replaced by exec leaves its shared memory behind: all of that is handed over
  // before anything of the newcomer.
  void add(Newcomer newcomer);
  // The process is about to end, and records nothing any more.
  void leave(std::uint32_t pid);
  // Hands over what is there, a part of it at a time if it is much.
  Source::Polled read(const OnRecord& on_record);
  // Counts what is in the rings as lost, and reads nothing more.
  void abandon();
  // Contents of shared memory that make no sense and have not been reported yet. `last`: nothing is
  // read any more, so processes that are alive can account for no more, either.
  std::vector<LossEvent> audit(bool last);

  InsideCounts counts() const;
  // Threads not looked up, because there was too much to look up in their process.
  std::uint64_t threads_not_looked_up() const;
  std::uint32_t drops(ThreadId thread) const;

 private:
  struct Traced {
    explicit Traced(Newcomer newcomer)
        : is(std::move(newcomer)), ids(is.record.head.pid, is.inner_pid) {}

    Newcomer is;
    mutable ThreadIds ids;
    // Threads' ids as cudabpf sees them, by ring, until the ring is given back. What the process
    // writes there later does not count: the thread stays the same until then.
    mutable std::unordered_map<std::size_t, std::uint32_t> threads;
    HashMap<std::uint32_t, std::uint32_t> lanes;  // the same by lane: see cb_gpu_batch
    // It writes nothing any more: it has ended or says that it will, or has been succeeded.
    std::uint64_t gone_since = 0;
    bool has_left = false;
    bool is_succeeded = false;       // by another program of the same process
    std::uint64_t broken_rings = 0;  // that were reported

    std::uint32_t outer(std::uint32_t lane, std::uint32_t inner);
    std::uint32_t pid() const { return is.record.head.pid; }
    std::uint32_t tid(std::size_t ring) const;
  };
  using All = std::list<Traced>;

  void report(std::span<const std::byte> record, const OnRecord& on_record);
  // What all rings held at some moment: it is handed over before the next look, so that a thread
  // that writes fast does not hold up the others.
  struct Pass {
    std::uint64_t began = 0;              // CLOCK_MONOTONIC
    std::uint64_t until = 0, looked = 0;  // the rings' clock: see ThreadRing::next
    bool much = false;                    // some ring was rather full
  };
  Pass look(std::span<Traced* const> processes);
  // When the first record was made that was not handed over; nothing: there was none.
  std::optional<std::uint64_t> merge(std::span<Traced* const> processes, const Pass& pass,
                                     std::size_t most_bytes, const OnRecord& on_record);
  std::size_t hand_over(Traced& process, std::size_t ring, const OnRecord& on_record);
  void release_rings(Traced& process, bool look_for_dead, const OnRecord& on_record);
  void let_in(const OnRecord& on_record);
  void close_books(Traced& process);
  void note_broken_rings(Traced& process);
  void doubt(const Traced& process, std::string_view why);
  // `began`: of the pass that has just ended. A process that was gone by then has left nothing
  // unread; later writes of others that may have its memory are not its records.
  void close_gone(std::uint64_t began, const OnRecord& on_record);
  bool is_to_be_closed(Traced& process, std::uint64_t began, std::optional<int>& status) const;
  void report_exit(const Traced& process, std::optional<int> status, const OnRecord& on_record);

  const bool reports_processes_;
  RecordClock clock_;
  All all_;
  All waiting_;          // for the programs that they succeed
  InsideCounts closed_;  // of processes that are gone, and of what is reported of processes
  std::uint64_t closed_not_looked_up_ = 0;
  std::vector<LossEvent> doubts_;  // not reported yet
  std::uint64_t looked_for_dead_ = 0;
  std::optional<Pass> pass_;  // the pass that has not ended yet
};

}  // namespace cudabpf
