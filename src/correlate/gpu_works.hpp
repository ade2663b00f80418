// Finds the call behind each GPU operation. CUPTI reports each thread's operations in the order of
// their submission, without naming the call; so a thread's calls and its operations are matched in
// order. Where either may have gaps, operations are reported without a call: none is better than
// the wrong one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "correlate/bounds.hpp"
#include "correlate/kernel_names.hpp"
#include "cudabpf/record.hpp"
#include "cudabpf/sink.hpp"
#include "util/hash.hpp"

namespace cudabpf {

// Whether a call to the function makes a GPU work.
bool asks_gpu(const Function& function);

class GpuWorks {
 public:
  GpuWorks(Sink& sink, KernelNames& names, Bounds& bounds, std::uint64_t begin_ns)
      : sink_(sink), names_(names), bounds_(bounds), begin_ns_(begin_ns) {}

  // A record about what GPUs did; what began after `until` is not in the trace. Times here are
  // CLOCK_MONOTONIC.
  void on_record(const Record& record, std::uint64_t until);
  // Whether CUPTI reports GPU times for the process.
  bool follows(std::uint32_t pid) const {
    if (processes_.empty()) return false;
    auto process = processes_.find(pid);
    return process != processes_.end() && process->second.timed;
  }
  // A call of such a process has ended that began at `ts`. Only those that make a GPU work count.
  void called(const Call& call, std::uint64_t ts);
  // Records of calls of the thread are missing.
  void calls_lost(std::uint32_t pid, std::uint32_t tid);
  // When a thread's oldest open call that makes a GPU work began; the end of time if it has none.
  using AskingSince = std::function<std::uint64_t(std::uint32_t pid, std::uint32_t tid)>;
  // Matches operations reported long enough before `read_until`, up to which all records were read,
  // unless their thread is still in a call that may have submitted them.
  void settle(std::uint64_t read_until, const AskingSince& asking_since);
  void thread_gone(std::uint32_t pid, std::uint32_t tid);
  void process_gone(std::uint32_t pid);
  void finish();
  // The names that are in use.
  void add_names(std::unordered_set<const KernelName*>& to) const;

  const GpuWorkCounts& counts() const { return counts_; }

 private:
  // A call that submitted work to a GPU.
  struct Asked {
    std::uint64_t id = 0, ts = 0;
    const Function* function = nullptr;
    const KernelName* kernel = nullptr;
    std::optional<std::uint64_t> size, stream;
    Dim3 grid, block;
    bool has_dims = false;
    bool graph = false;
    NodeWork what = NodeWork::none;
  };
  // A thread that submitted work.
  struct Asker {
    std::uint32_t tid = 0;
    std::uint64_t since = 0;
    bool whole = true;  // no call of it was lost
    std::deque<Asked> asked;
  };
  using Askers = std::list<Asker>;
  struct Batch {
    std::vector<abi::cb_gpu_work> works;
    std::optional<abi::cb_gpu_batch> end;  // all of it was reported
    std::uint64_t last_began = 0;          // of its operations; if one has no time, the end of time
  };
  // CUPTI's view of a thread.
  struct Lane {
    std::map<std::uint32_t, Batch> batches;
    std::uint32_t next = 0;  // the batch that comes next
    bool whole = true;       // no operation of it was lost
    // The call behind the last operation: there may be more of it.
    std::uint32_t correlation = 0;
    std::optional<Asked> last;
    Unjoined why_not = Unjoined::none;
  };
  struct OfProcess {
    bool timed = false;  // CUPTI reports times for it
    Askers askers;
    HashMap<std::uint32_t, Askers::iterator> by_tid;
    std::map<std::uint32_t, Lane> lanes;
    HashMap<std::uint64_t, const KernelName*> names;
  };

  void told(const Record& record);
  Lane* lane_of(OfProcess& process, std::uint32_t number);
  Asker& asker_of(OfProcess& process, std::uint32_t tid, std::uint64_t ts);
  Asker* asker_of(OfProcess& process, const abi::cb_gpu_batch& batch);
  void settle(std::uint32_t pid, OfProcess& process, std::uint64_t told_before,
              const AskingSince& asking_since);
  void join(std::uint32_t pid, OfProcess& process, Lane& lane, const Batch& batch);
  void find_call(const OfProcess& process, Lane& lane, Asker* asker, const abi::cb_gpu_work& work);
  bool fits(const OfProcess& process, const Asked& asked, const abi::cb_gpu_work& work) const;
  void emit(std::uint32_t pid, const OfProcess& process, const Lane& lane,
            const abi::cb_gpu_work& work);
  void give_up(Asker& asker, Unjoined why, std::size_t count);
  void end(std::uint32_t pid, OfProcess& process);

  Sink& sink_;
  KernelNames& names_;
  Bounds& bounds_;
  std::uint64_t begin_ns_;
  std::uint64_t until_ = std::numeric_limits<std::uint64_t>::max();
  std::map<std::uint32_t, OfProcess> processes_;
  std::size_t waiting_calls_ = 0, waiting_works_ = 0;  // of all processes
  GpuWorkCounts counts_;
};

}  // namespace cudabpf
