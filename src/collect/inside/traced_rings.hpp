// The processes that are recorded from inside, and their records, in the order of time. All of it
// belongs to the thread that reads.
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
  std::uint32_t inner_pid = 0;  // as the process itself knows its id
  Fd pidfd;                     // none: the kernel has no such thing
  std::shared_ptr<SharedRings> shared;
};

class TracedRings {
 public:
  using OnRecord = std::function<void(std::span<const std::byte> record)>;

  // Without `reports_processes`, another source records when processes and threads begin and end.
  // `clock`: that of all rings.
  TracedRings(bool reports_processes, abi::ci_clock clock)
      : reports_processes_(reports_processes), clock_(clock) {}

  // A program that another one has replaced by exec leaves its shared memory behind: all of that is
  // handed over before anything of the newcomer.
  void add(Newcomer newcomer);
  // The process is about to end, and records nothing any more.
  void leave(std::uint32_t pid);
  // Hands over what is there, a part of it at a time if it is much.
  Source::Polled read(const OnRecord& on_record);
  // What is there counts as lost, and nothing more is read.
  void abandon();
  // What makes no sense in the shared memory of processes, and has not been reported yet. `last`:
  // nothing is read any more, so the books of those that are alive are closed, too.
  std::vector<LossEvent> audit(bool last);

  InsideCounts counts() const;
  // Threads that nobody looked up, because there was too much to look up in their process.
  std::uint64_t threads_not_looked_up() const;
  std::uint32_t drops(ThreadId thread) const;

 private:
  struct Traced {
    explicit Traced(Newcomer newcomer)
        : is(std::move(newcomer)), ids(is.record.head.pid, is.inner_pid) {}

    Newcomer is;
    mutable ThreadIds ids;
    // Threads' ids as cudabpf sees them, by ring, until it is given back. What the process writes
    // there later counts no more: a thread is one and the same until then.
    mutable std::unordered_map<std::size_t, std::uint32_t> threads;
    HashMap<std::uint32_t, std::uint32_t> lanes;  // likewise, by lane: see cb_gpu_batch
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
  // What there was in all rings at some moment: it is handed over before anybody looks again, so
  // that nobody who writes fast holds up the others.
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
  // `began`: of the pass that has just ended. Who was gone by then has left nothing unread; what
  // others write, who may have its memory, is nothing of it.
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
  std::optional<Pass> pass_;  // that has not come to its end
};

}  // namespace cudabpf
