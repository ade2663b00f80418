// What a report's page draws along the axis of time: calls and operations on the driver by thread,
// what GPUs did by queue, and a few curves. All of it or, where that is too much, what MergedRows
// makes of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/lanes/lane_events.hpp"
#include "analyze/lanes/lane_owners.hpp"
#include "analyze/lanes/merged_rows.hpp"
#include "analyze/report/report_events.hpp"
#include "analyze/report/report_words.hpp"
#include "analyze/time_buckets.hpp"

namespace cudabpf::analyze {

class ReportTimeline : public Analysis {
 public:
  // Times are numbers in a browser, which are exact up to here.
  static constexpr std::uint64_t LATEST = (std::uint64_t{1} << 53) - 1;

  struct OfThread {
    std::array<ReportRow, LANE_ROWS> rows;
    std::vector<ReportRow> ranges;  // the program's own, by depth
  };
  struct OfQueue {
    ReportRow row;
  };
  struct Nothing {};
  using Owners = LaneOwners<OfThread, Nothing, OfQueue>;
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

  explicit ReportTimeline(Names& names, std::size_t most_events = ReportEvent::MAX);

  void line(const Line& line) override;
  // Its names, and windows that reach into the part.
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  const Names& names() const { return events_.names(); }
  std::uint64_t from() const { return from_; }
  std::uint64_t to() const { return to_; }
  const std::vector<Owners::Process>& processes() const { return owners_.processes(); }
  const std::vector<Owners::Thread>& threads() const { return owners_.threads(); }
  const std::vector<Owners::Queue>& queues() const { return owners_.queues(); }
  // An event's stream is one more.
  const std::vector<Owners::Stream>& streams() const { return owners_.streams(); }
  const EventKinds& kinds() const { return kinds_; }
  const EventDetails& details() const { return details_; }
  unsigned resolution() const { return rows_.resolution(); }
  const TimeBuckets<Activity>& activity() const { return activity_; }
  const std::map<std::uint32_t, TimeBuckets<Sampled>>& gpus() const { return gpus_; }
  const LeftOut& left_out() const { return left_out_; }
  std::string short_name(Name kernel) const { return events_.short_name(kernel); }

 private:
  static constexpr std::size_t MAX_THREADS = 512, MAX_STREAMS = 1024, MAX_QUEUES = 256;
  static constexpr std::size_t MAX_GPUS = 16;

  void on_thread(const Line& line);
  void range(const Line& line);
  void gpu_operation(const Line& line);
  void gpu_sample(const GpuSample& sample);
  void count(const Line& call);
  void add(ReportRow& row, const Line& line, std::uint64_t end, std::uint32_t stream);
  template <typename Each>
  void each_row(Each&& each);

  LaneEvents events_;
  Owners owners_{{.threads = MAX_THREADS, .streams = MAX_STREAMS, .queues = MAX_QUEUES}};
  MergedRows<ReportEvent> rows_;
  EventKinds kinds_;
  EventDetails details_;
  TimeBuckets<Activity> activity_;
  std::map<std::uint32_t, TimeBuckets<Sampled>> gpus_;
  LeftOut left_out_;
  std::uint64_t from_ = 0, to_ = 0;
};

}  // namespace cudabpf::analyze
