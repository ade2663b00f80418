// When each thread was in which kind of call, when it launched, what the driver was asked for
// meanwhile, and what GPUs did when; for the whole trace or a part of it. What of it is drawn:
// TimelineView.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/circumstances/streams.hpp"
#include "analyze/course/course.hpp"
#include "analyze/short_names.hpp"
#include "analyze/timeline/call_category.hpp"
#include "analyze/timeline/gpu_activity.hpp"
#include "analyze/timeline/gpu_work.hpp"
#include "analyze/timeline/timeline_bars.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Timeline : public Analysis {
 public:
  using Window = Part;

  // What a thread did, in all or in a column of a picture.
  struct Busy {
    std::array<std::uint64_t, CATEGORIES> time{};  // ns; a call made inside another is part of it
    std::uint64_t calls = 0, launches = 0, ioctls = 0;
    std::uint64_t total() const;
    Category most() const;
  };

  // Between two calls that a thread made one after the other.
  struct Gap {
    std::uint64_t begin = 0, time = 0;  // ns
    Name after, before;
  };
  enum Row : std::uint8_t { CALLS, NESTED, DRIVER };
  static constexpr std::size_t ROWS = 3;
  struct Thread {
    std::uint32_t tid = 0;
    Busy all;
    Gap gap;  // the longest
    std::uint64_t last_end = 0;
    Name last;  // the call that ended then
    std::array<BarRow, ROWS> bars;
  };
  struct Stream {
    std::uint64_t handle = 0;
    std::uint32_t tid = 0;  // of a per-thread default stream; else 0
    std::uint64_t enqueued = 0;
    BarRow bars;  // of calls that put something on it, when they began
  };
  struct Process {
    std::uint64_t number = 0;  // in the trace, since pids are reused; 0: it made no call
    std::uint32_t pid = 0;
    Name comm;
    std::vector<std::size_t> threads, streams;
    std::vector<std::size_t>
        queues;  // of its GPUs; where there are any, they say more than streams
    bool empty() const { return threads.empty() && queues.empty(); }
  };
  // A call, or an operation on the driver's devices; kept as long as there are few.
  struct Piece {
    std::uint64_t process = 0;  // its number
    std::uint32_t tid = 0;
    std::uint64_t begin = 0, end = 0;  // in the window
    std::uint64_t duration = 0;        // in all
    std::uint64_t id = 0, inside = 0;  // the call's; that of the call that it was made in
    Category category = Category::other;
    Name name, what;  // what: the kernel or graph, the control command or the class
    bool launch = false, timed = false;
    bool is_launched = false;  // `what` is a kernel or a graph
  };
  static constexpr std::size_t FEW = 60;

  // Without a window it takes in the whole trace, which is there since `recorded_from`.
  Timeline(Names& names, std::optional<Window> window, std::uint64_t recorded_from = 0);

  void line(const Line& line) override;
  // A call that began before the window may reach into it.
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  const Names& names() const { return names_; }
  const Course& course() const { return course_; }
  std::uint64_t trace_duration() const { return duration_; }
  bool is_exact() const { return exact_; }  // it was given its window
  std::uint64_t from() const { return window_.from; }
  std::uint64_t to() const { return window_.to; }  // known once all lines were seen
  const std::vector<Process>& processes() const { return processes_; }
  const Thread& thread(std::size_t index) const { return threads_[index]; }
  const Stream& stream(std::size_t index) const { return streams_[index]; }
  std::size_t threads() const { return threads_.size(); }
  std::size_t streams() const { return streams_.size(); }
  // As they were sampled, by NVML's index.
  const std::map<std::uint32_t, GpuActivity>& gpus() const { return gpus_; }
  const GpuQueue& gpu_queue(std::size_t index) const { return gpu_queues_[index]; }
  std::size_t gpu_queues() const { return gpu_queues_.size(); }
  std::uint64_t left_out_of_queues() const { return left_out_of_queues_; }
  // Ordered by queue and time; empty if there are more than MOST_WORKS.
  const std::vector<QueuedWork>& gpu_works() const { return gpu_works_; }
  bool has_few_works() const { return !many_works_ && gpu_works_.size() <= FEW; }
  // The one that took this time; null: it is not kept.
  const QueuedWork* work_at(std::size_t queue, const TimeSpan& span) const;
  std::string name_of(const QueuedWork& work) const;
  // Those of threads beyond the most that are kept apart, and how many they and those of streams
  // are.
  const BarRow& more_calls() const { return more_calls_; }
  std::uint64_t left_out_of_threads() const { return left_out_of_threads_; }
  std::uint64_t left_out_of_streams() const { return left_out_of_streams_; }
  // Calls within this time of each other are one bar; 0: none are.
  std::uint64_t resolution() const { return bars_.resolution(); }
  // Empty if there are more than FEW.
  const std::vector<Piece>& pieces() const { return pieces_; }
  // What it is about; a kernel as other answers name it. Empty: nothing in particular.
  std::string what_of(const Piece& piece) const;
  // A kernel or a graph.
  std::string short_name(Name what) const;

 private:
  static constexpr std::size_t MAX_GPUS = 16;  // that have a row
  // At most this many are kept apart; the calls of later ones are only counted.
  static constexpr std::size_t MAX_THREADS = 256, MAX_STREAMS = 64, MAX_QUEUES = 64;
  static constexpr std::size_t MOST_WORKS = 1 << 13;  // of GPUs, of which all is kept

  struct Key {                  // of a thread
    std::uint64_t process = 0;  // process number
    std::uint32_t tid = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const { return hash_of(key.process, key.tid); }
  };

  void call(const Line& line);
  void driver(const Line& line);
  void gpu_sample(const GpuSample& sample);
  void gpu_work(const Line& line);
  std::size_t gpu_queue_of(const Line& line);  // MAX_QUEUES: there are too many
  void keep_work(std::size_t queue, const TimeSpan& span, const Line& line);
  void sort_works();
  void sum_up(GpuQueue& queue) const;
  Name name_of_graph(std::uint64_t number);
  void process(const Line& line);
  std::optional<TimeSpan> clipped(const TimeSpan& span) const;
  TimeSpan span_of(const Line& line) const;
  static std::uint64_t end_before_next(const BarRow& row, const TimeSpan& call);
  void count(Thread& thread, const Line& line, Category category, const TimeSpan& here);
  void keep_piece(const Line& line, Category category, const TimeSpan& here);
  void add(BarRow& row, Bar bar, bool around);
  template <typename Each>
  void each_row(Each&& each);
  Name launched_by(const Line& line);
  Process& process_of(const Line& line);
  Thread* thread_of(const Line& line);
  Stream* stream_of(const Line& line);

  Names& names_;
  Course course_;
  Window window_;
  bool exact_;
  TimelineBars bars_;
  CallCategories categories_;
  Name ioctl_, exit_;
  std::uint64_t last_seen_ = 0, duration_ = 0;

  std::map<std::uint32_t, GpuActivity> gpus_;
  std::vector<Process> processes_;  // that have a thread, a stream or a queue
  std::vector<Thread> threads_;
  std::vector<Stream> streams_;
  BarRow more_calls_;
  std::vector<GpuQueue> gpu_queues_;
  std::vector<QueuedWork> gpu_works_;
  bool many_works_ = false;  // more than are kept
  std::uint64_t left_out_of_queues_ = 0;
  HashMap<std::uint32_t, std::size_t> process_by_pid_;  // the last of each
  HashMap<std::uint64_t, Name> names_of_graphs_;
  std::unordered_map<std::uint64_t, std::size_t> process_by_number_;
  HashMap<Key, std::size_t, Hash> thread_by_key_;
  HashMap<StreamKey, std::size_t, StreamHash> stream_by_key_;
  std::uint64_t left_out_of_threads_ = 0, left_out_of_streams_ = 0;
  Key last_key_;
  Thread* last_thread_ = nullptr;
  ShortNames short_names_;
  // "graph 3, 20 kernels": what launches of graphs are called, and these names' numbers.
  std::unordered_map<const LaunchedGraph*, Name> graphs_;
  std::unordered_set<std::uint32_t> graph_names_;

  std::vector<Piece> pieces_;
  bool many_ = false;
};

std::string name_of(const Timeline::Stream& stream);  // "stream 0x7f…"
// "process 4242 python"; printable.
std::string name_of(const Timeline& timeline, const Timeline::Process& process);
Json timeline_json(const Timeline& timeline);
void add_timeline(Page& page, const Timeline& timeline);
std::string timeline_svg(const Timeline& timeline, std::string_view title);

}  // namespace cudabpf::analyze
