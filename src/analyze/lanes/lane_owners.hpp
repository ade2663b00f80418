// The owners of a picture's lanes along the axis of time: a trace's processes, each with its
// threads, streams and GPU queues. What happened on them is up to each picture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/derived/processes.hpp"
#include "analyze/derived/range_places.hpp"
#include "analyze/derived/streams.hpp"
#include "analyze/lanes/gpu_queues.hpp"
#include "analyze/work.hpp"
#include "util/hash.hpp"
#include "util/page/time_scale.hpp"

namespace cudabpf::analyze {

// A thread's rows: its calls, those made inside others, and operations on the driver's devices.
enum LaneRow : std::uint8_t { CALLS, NESTED, DRIVER };
inline constexpr std::size_t LANE_ROWS = 3;

inline std::size_t depth_of(const Line& range) { return range.place ? range.place->depth : 0; }
// A range has a bar if it has a name and is no mark: below those around it, in the row of its
// depth. How many rows a picture has for a thread's ranges at most.
inline constexpr std::size_t RANGE_ROWS = 16;
inline bool has_bar(const Line& range) {
  return range.label && (range.has(Field::duration) || range.unfinished) &&
         depth_of(range) < RANGE_ROWS;
}

inline LaneRow row_of(const Line& line) {
  return line.kind != LineKind::call ? DRIVER : is_outermost(line) ? CALLS : NESTED;
}

// OfThread, OfStream, OfQueue: what a picture keeps of each.
template <typename OfThread, typename OfStream, typename OfQueue>
class LaneOwners {
 public:
  // At most this many are kept apart.
  struct Limits {
    std::size_t threads, streams, queues;
  };
  struct Process {
    std::uint64_t number = 0;  // in the trace, since pids are reused; 0: it made no call
    std::uint32_t pid = 0;
    Name host;  // where there are several
    Name comm;
    // Indices. A process may have only queues; where it has any, they say more than streams.
    std::vector<std::size_t> threads, streams, queues;
    // In which its GPU times were recorded, where they were not always.
    std::vector<TimeSpan> windows;
    bool empty() const { return threads.empty() && queues.empty(); }
  };
  struct Thread : OfThread {
    std::size_t process = 0;  // its index
    std::uint32_t tid = 0;
  };
  struct Stream : OfStream {
    std::size_t process = 0;
    std::uint64_t handle = 0;
    std::uint32_t tid = 0;  // of a per-thread default stream; else 0
  };
  struct Queue : OfQueue {
    std::size_t process = 0;
    QueueKey key;
    std::string handle;  // "default stream", "0x7f…"; empty: not known
  };

  explicit LaneOwners(const Limits& limits) : limits_(limits) {}

  const std::vector<Process>& processes() const { return processes_; }
  // Those of a host together, the hosts and their processes as they came.
  std::vector<const Process*> by_host() const {
    std::vector<const Process*> all;
    std::vector<Name> hosts;
    for (const Process& process : processes_) {
      all.push_back(&process);
      if (std::find(hosts.begin(), hosts.end(), process.host) == hosts.end())
        hosts.push_back(process.host);
    }
    auto place = [&](const Process* process) {
      return std::find(hosts.begin(), hosts.end(), process->host);
    };
    std::stable_sort(all.begin(), all.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
    return all;
  }
  std::vector<Thread>& threads() { return threads_; }
  const std::vector<Thread>& threads() const { return threads_; }
  std::vector<Stream>& streams() { return streams_; }
  const std::vector<Stream>& streams() const { return streams_; }
  std::vector<Queue>& queues() { return queues_; }
  const std::vector<Queue>& queues() const { return queues_; }

  // Null: there are too many. Valid until the next line.
  Thread* thread_of(const Line& line) {
    if (!line.process) return nullptr;
    ThreadKey key{line.process->number, line.tid};
    if (last_thread_ && key == last_key_) return last_thread_;
    auto at = thread_by_key_.find(key);
    if (at == thread_by_key_.end()) {
      std::size_t process = threads_.size() < limits_.threads ? process_of(line) : NONE;
      if (process == NONE) return nullptr;
      processes_[process].threads.push_back(threads_.size());
      at = thread_by_key_.emplace(key, threads_.size()).first;
      Thread& thread = threads_.emplace_back();
      thread.process = process;
      thread.tid = line.tid;
    }
    last_key_ = key;
    return last_thread_ = &threads_[at->second];
  }
  // `key`: the picture chooses how finely default streams are distinguished.
  Stream* stream_of(const Line& line, const StreamKey& key) {
    auto at = stream_by_key_.find(key);
    if (at == stream_by_key_.end()) {
      std::size_t process = streams_.size() < limits_.streams ? process_of(line) : NONE;
      if (process == NONE) return nullptr;
      processes_[process].streams.push_back(streams_.size());
      at = stream_by_key_.emplace(key, streams_.size()).first;
      Stream& stream = streams_.emplace_back();
      stream.process = process;
      stream.handle = key.handle;
      stream.tid = key.tid;
    }
    return &streams_[at->second];
  }
  // Its process may have no call in the trace, or be gone already.
  Queue* queue_of(const Line& work) {
    bool full = queues_.size() == limits_.queues;
    if (full && !process_by_pid_.contains(work.pid)) return nullptr;
    std::size_t process = process_of(work);
    if (process == NONE) return nullptr;
    QueueKey key = analyze::queue_of(work);
    auto& its = processes_[process].queues;
    auto at = std::lower_bound(
        its.begin(), its.end(), key,
        [this](std::size_t queue, const QueueKey& one) { return queues_[queue].key < one; });
    if (at == its.end() || queues_[*at].key != key) {
      if (full) return nullptr;
      at = its.insert(at, queues_.size());
      Queue& queue = queues_.emplace_back();
      queue.process = process;
      queue.key = key;
    }
    Queue& queue = queues_[*at];
    if (queue.handle.empty()) queue.handle = handle_name(work);
    return &queue;
  }

  // GPU times were recorded then.
  void window(const Line& line) {
    std::size_t process = windows_ < MAX_WINDOWS && line.end() > line.ts ? process_of(line) : NONE;
    if (process == NONE) return;
    processes_[process].windows.push_back({line.ts, line.end()});
    windows_++;
  }

  // When it was; the end is never before the beginning, whatever a trace says. An unfinished call's
  // line comes where its thread, its process or the trace ended.
  TimeSpan span_of(const Line& line) const {
    return {line.ts, std::max(line.ts, line.unfinished ? last_seen_ : line.end())};
  }

  // Notes that a line was read, whatever it says.
  void seen(const Line& line) {
    // A GPU may have worked longer than a call that did not return.
    bool counts = line.kind != LineKind::end && line.kind != LineKind::gpu_operation;
    if (counts) last_seen_ = std::max(last_seen_, line.end());
    if (!line.gone.empty()) last_thread_ = nullptr;
    for (const analyze::Process* gone : line.gone) {
      auto is_its = [=](const auto& entry) { return entry.first.process == gone->number; };
      std::erase_if(thread_by_key_, is_its);
      std::erase_if(stream_by_key_, is_its);
      process_by_number_.erase(gone->number);
    }
    if (line.kind != LineKind::process || !line.comm) return;
    auto known = process_by_number_.find(line.process->number);
    if (known != process_by_number_.end()) processes_[known->second].comm = line.comm;
  }

 private:
  static constexpr std::size_t NONE = ~std::size_t{0};
  static constexpr std::size_t MAX_PROCESSES = 512, MAX_WINDOWS = 1 << 17;

  struct ThreadKey {
    std::uint64_t process = 0;  // its number
    std::uint32_t tid = 0;
    bool operator==(const ThreadKey&) const = default;
  };
  struct ThreadHash {
    std::size_t operator()(const ThreadKey& key) const { return hash_of(key.process, key.tid); }
  };

  std::size_t process_of(const Line& line) {
    std::uint64_t number = line.process ? line.process->number : 0;
    if (number) {
      auto known = process_by_number_.find(number);
      if (known != process_by_number_.end()) return known->second;
    }
    auto of_pid = process_by_pid_.find(line.pid);
    bool known = of_pid != process_by_pid_.end();
    if (known && !number) return of_pid->second;
    // What its GPUs did may come before its first call.
    bool is_its = known && !processes_[of_pid->second].number;
    if (!is_its && processes_.size() == MAX_PROCESSES) return NONE;
    std::size_t index = is_its ? of_pid->second : processes_.size();
    if (!is_its) processes_.emplace_back();
    process_by_pid_[line.pid] = index;
    processes_[index].pid = line.pid;
    processes_[index].host = line.host;
    if (!number) return index;
    process_by_number_.emplace(number, index);
    processes_[index].number = number;
    processes_[index].comm = line.process->comm;
    return index;
  }

  Limits limits_;
  std::vector<Process> processes_;  // that have a thread, a stream or a queue
  std::vector<Thread> threads_;
  std::vector<Stream> streams_;
  std::vector<Queue> queues_;
  std::unordered_map<std::uint64_t, std::size_t> process_by_number_;
  HashMap<std::uint32_t, std::size_t> process_by_pid_;  // the last of each
  HashMap<ThreadKey, std::size_t, ThreadHash> thread_by_key_;
  HashMap<StreamKey, std::size_t, StreamHash> stream_by_key_;
  ThreadKey last_key_;
  Thread* last_thread_ = nullptr;
  std::uint64_t last_seen_ = 0;
  std::size_t windows_ = 0;  // of all processes
};

}  // namespace cudabpf::analyze
