// When each thread was in which kind of call, when it launched, its requests to the driver
// meanwhile, and what GPUs did when; for the whole trace or a part of it. TimelineView chooses what
// is drawn.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/iterations/execution.hpp"
#include "analyze/lanes/lane_events.hpp"
#include "analyze/lanes/lane_owners.hpp"
#include "analyze/lanes/merged_rows.hpp"
#include "analyze/timeline/gpu_activity.hpp"
#include "analyze/timeline/gpu_queue.hpp"
#include "analyze/timeline/timeline_bars.hpp"

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
  struct OfThread {
    Busy all;
    Gap gap;  // the longest
    std::uint64_t last_end = 0;
    Name last;  // the call that ended then
    std::array<BarRow, LANE_ROWS> bars;
    std::vector<BarRow> ranges;  // the program's own, by depth
  };
  struct OfStream {
    std::uint64_t enqueued = 0;
    BarRow bars;  // of calls that put something on it, when they began
  };
  using Owners = LaneOwners<OfThread, OfStream, QueueBars>;
  using Process = Owners::Process;
  using Thread = Owners::Thread;
  using Stream = Owners::Stream;
  using Queue = Owners::Queue;
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
  static constexpr std::size_t MAX_BARS = 1 << 16;  // after a merge

  // Without a window it takes in the whole trace, which is there since `recorded_from`.
  Timeline(Names& names, std::optional<Window> window, std::uint64_t recorded_from = 0);

  void line(const Line& line) override;
  // A call that began before the window may reach into it.
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  const Names& names() const { return events_.names(); }
  const Execution& execution() const { return execution_; }
  std::uint64_t trace_duration() const { return duration_; }
  bool is_exact() const { return exact_; }  // it was given its window
  std::uint64_t from() const { return window_.from; }
  std::uint64_t to() const { return window_.to; }  // known once all lines were seen
  const std::vector<Process>& processes() const { return owners_.processes(); }
  std::vector<const Process*> by_host() const { return owners_.by_host(); }
  const Thread& thread(std::size_t index) const { return owners_.threads()[index]; }
  const Stream& stream(std::size_t index) const { return owners_.streams()[index]; }
  std::size_t threads() const { return owners_.threads().size(); }
  std::size_t streams() const { return owners_.streams().size(); }
  // As they were sampled, by NVML's index.
  const std::map<std::uint32_t, GpuActivity>& gpus() const { return gpus_; }
  const Queue& gpu_queue(std::size_t index) const { return owners_.queues()[index]; }
  std::size_t gpu_queues() const { return owners_.queues().size(); }
  std::uint64_t left_out_of_queues() const { return left_out_of_queues_; }
  // Ordered by queue and time; empty if there are more than MAX_OPERATIONS.
  const std::vector<QueuedOperation>& gpu_operations() const { return gpu_operations_; }
  bool has_few_operations() const { return !many_operations_ && gpu_operations_.size() <= FEW; }
  // The one that took this time; null: it is not kept.
  const QueuedOperation* work_at(std::size_t queue, const TimeSpan& span) const;
  std::string name_of(const QueuedOperation& work) const;
  // Calls of threads beyond the limit, and how many they and those of streams beyond it are.
  const BarRow& more_calls() const { return more_calls_; }
  std::uint64_t left_out_of_threads() const { return left_out_of_threads_; }
  std::uint64_t left_out_of_streams() const { return left_out_of_streams_; }
  // Calls within this time of each other are one bar; 0: none are.
  std::uint64_t resolution() const { return Bar::time_of(bars_.resolution()); }
  // Empty if there are more than FEW.
  const std::vector<Piece>& pieces() const { return pieces_; }
  // What it is about; a kernel as other answers name it. Empty: nothing in particular.
  std::string what_of(const Piece& piece) const;
  // A kernel or a graph.
  std::string short_name(Name what) const { return events_.short_name(what); }

 private:
  static constexpr std::size_t MAX_GPUS = 16;  // that have a row
  // At most this many are kept apart; the calls of later ones are only counted.
  static constexpr std::size_t MAX_THREADS = 256, MAX_STREAMS = 64, MAX_QUEUES = 64;
  static constexpr std::size_t MAX_OPERATIONS = 1 << 13;  // of GPUs, of which all is kept

  void on_thread(const Line& line);
  void range(const Line& line);
  void enqueue(const Line& line, Alike one);
  void gpu_sample(const GpuSample& sample);
  void gpu_operation(const Line& line);
  void keep_work(std::size_t queue, const TimeSpan& span, const Line& line);
  void sort_operations();
  void sum_up(QueueBars& queue) const;
  std::optional<TimeSpan> clipped(const TimeSpan& span) const;
  void count(OfThread& thread, const Line& line, Category category, const TimeSpan& here);
  void keep_piece(const Line& line, const LaneEvent& event, const TimeSpan& here);
  void add(BarRow& row, Bar bar);
  void add_around(BarRow& row, Bar bar);
  template <typename Each>
  void each_row(Each&& each);

  Execution execution_;
  Window window_;
  bool exact_;
  LaneEvents events_;
  Owners owners_{{.threads = MAX_THREADS, .streams = MAX_STREAMS, .queues = MAX_QUEUES}};
  MergedRows<Bar> bars_{2 * MAX_BARS, MAX_BARS};
  std::uint64_t duration_ = 0;

  std::map<std::uint32_t, GpuActivity> gpus_;
  BarRow more_calls_;
  std::vector<QueuedOperation> gpu_operations_;
  bool many_operations_ = false;  // more than are kept
  std::uint64_t left_out_of_queues_ = 0, left_out_of_threads_ = 0, left_out_of_streams_ = 0;

  std::vector<Piece> pieces_;
  bool many_ = false;
};

std::string name_of(const Timeline::Stream& stream);   // "stream 0x7f…"
std::string full_name(const Timeline::Queue& queue);   // "GPU 0 stream 7 (0x7f…)"
std::string short_name(const Timeline::Queue& queue);  // "GPU 0 stream 7"
// "process 4242 python"; printable.
std::string name_of(const Timeline& timeline, const Timeline::Process& process);
Json timeline_json(const Timeline& timeline);
void add_timeline(Page& page, const Timeline& timeline);
std::string timeline_svg(const Timeline& timeline, std::string_view title);

}  // namespace cudabpf::analyze
