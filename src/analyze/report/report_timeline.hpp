// What a report's page draws along the axis of time: calls and operations on the driver by thread,
// what GPUs did by queue, and a few curves. All of it, or where that is too much, what ReportEvents
// makes of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/circumstances/streams.hpp"
#include "analyze/gpu_queues.hpp"
#include "analyze/report/report_events.hpp"
#include "analyze/report/report_words.hpp"
#include "analyze/short_names.hpp"
#include "analyze/time_buckets.hpp"
#include "analyze/timeline/call_category.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class ReportTimeline : public Analysis {
 public:
  // Times are numbers in a browser, which are exact up to here.
  static constexpr std::uint64_t LATEST = (std::uint64_t{1} << 53) - 1;

  struct Process {
    std::uint32_t pid = 0;
    Name comm;
    std::uint64_t number = 0;  // 0: it made no call
  };
  struct Thread {
    std::size_t process = 0;  // which of processes()
    std::uint32_t tid = 0;
    // Calls; calls made inside others; operations on the driver's devices.
    ReportLane calls, nested, driver;
  };
  struct Queue {
    std::size_t process = 0;
    QueueKey key;
    std::string handle;
    ReportLane works;
  };
  struct Stream {
    std::size_t process = 0;
    std::uint64_t handle = 0;
    std::uint32_t tid = 0;  // of a per-thread default stream
  };
  struct Activity {  // during a bucket of time
    std::uint64_t launches = 0, to_device = 0, to_host = 0, other_copies = 0;  // bytes
    void merge(const Activity& next);
  };
  struct Sampled {
    double active = 0, watts = 0;  // sums of `actives` and `powers` samples
    std::uint32_t actives = 0, powers = 0;
    void merge(const Sampled& next);
  };
  // What is not in the timeline, because there are more threads or queues than it keeps apart, or
  // because its time is beyond LATEST.
  struct LeftOut {
    std::uint64_t of_threads = 0, of_queues = 0, too_late = 0;
  };

  explicit ReportTimeline(Names& names, std::size_t most_events = ReportEvents::MOST);

  void line(const Line& line) override;
  void outside(const Line& line) override { short_names_.line(line); }
  void finish(const TraceFacts& facts) override;

  const Names& names() const { return names_; }
  std::uint64_t from() const { return from_; }
  std::uint64_t to() const { return to_; }
  const std::vector<Process>& processes() const { return processes_; }
  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<Queue>& queues() const { return queues_; }
  const std::vector<Stream>& streams() const { return streams_; }  // an event's is one more
  const EventKinds& kinds() const { return kinds_; }
  const EventDetails& details() const { return details_; }
  unsigned resolution() const { return events_.resolution(); }
  const TimeBuckets<Activity>& activity() const { return activity_; }
  const std::map<std::uint32_t, TimeBuckets<Sampled>>& gpus() const { return gpus_; }
  const LeftOut& left_out() const { return left_out_; }
  std::string short_name(Name kernel) const { return short_names_.of(kernel); }

 private:
  static constexpr std::size_t MAX_PROCESSES = 512, MAX_THREADS = 512, MAX_QUEUES = 256;
  static constexpr std::size_t MAX_STREAMS = 1024, MAX_GPUS = 16;

  using ThreadKey = std::pair<std::uint64_t, std::uint32_t>;  // process number, tid
  struct ThreadHash {
    std::size_t operator()(const ThreadKey& key) const { return hash_of(key.first, key.second); }
  };

  void call(const Line& line);
  void driver(const Line& line);
  void gpu_work(const Line& line);
  void gpu_sample(const Line& line);
  void count(const Line& call);
  void add(ReportLane& lane, const Line& line, const EventKind& kind, std::uint64_t id,
           std::uint32_t stream);
  template <typename Each>
  void each_lane(Each&& each);
  Name launched_by(const Line& line);
  std::size_t process_of(const Line& line);
  Thread* thread_of(const Line& line);
  Queue* queue_of_work(const Line& line);
  std::uint32_t stream_number(const Line& line, std::size_t process);

  Names& names_;
  CallCategories categories_;
  ShortNames short_names_;
  Name ioctl_, nv_ok_;
  EventKinds kinds_;
  EventDetails details_;
  ReportEvents events_;
  std::vector<Process> processes_;
  std::vector<Thread> threads_;
  std::vector<Queue> queues_;
  std::vector<Stream> streams_;
  std::unordered_map<std::uint64_t, std::size_t> process_by_number_;
  HashMap<std::uint32_t, std::size_t> process_by_pid_;  // the last of each
  HashMap<ThreadKey, std::size_t, ThreadHash> thread_by_key_;
  std::map<std::pair<std::size_t, QueueKey>, std::size_t> queue_by_key_;
  HashMap<StreamKey, std::uint32_t, StreamHash> stream_by_key_;
  std::unordered_map<const LaunchedGraph*, Name> graphs_;
  TimeBuckets<Activity> activity_;
  std::map<std::uint32_t, TimeBuckets<Sampled>> gpus_;
  LeftOut left_out_;
  std::uint64_t from_ = 0, to_ = 0, last_seen_ = 0;
};

}  // namespace cudabpf::analyze
