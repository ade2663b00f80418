// When each GPU worked for each process, when it did not and why, as the GPUs' own times show; Idle
// only concludes that from waits. A GPU that another process kept busy is idle for this one.
//
// Lines of GPU operations come late and in any order, so they are kept until the end or until there
// are MAX_KEPT; then the earlier half is settled. Operations in a settled time can only be counted
// (`late`).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/gaps/busy.hpp"
#include "analyze/gaps/critical_path.hpp"
#include "analyze/gaps/gap.hpp"
#include "analyze/gaps/gpu_curve.hpp"
#include "analyze/gaps/idle_by_range.hpp"
#include "analyze/gaps/idle_cause.hpp"
#include "analyze/gaps/thread_calls.hpp"
#include "analyze/gaps/work_pieces.hpp"
#include "analyze/short_names.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"
#include "util/largest.hpp"

namespace cudabpf::analyze {

// A time in which a GPU had nothing to do for a process.
struct GpuGap {
  std::uint32_t pid = 0, tid = 0;  // tid: the thread that issued what ended it; 0: not known
  std::int64_t device = 0;
  std::uint64_t begin = 0, end = 0;
  Name before, after;                             // kernels, or what else ran
  std::uint64_t before_call = 0, after_call = 0;  // 0: not known
  IdleTimes times;
  ThreadTime meanwhile;

  std::uint64_t time() const { return end - begin; }
};

struct LongerGpuGap {
  bool operator()(const GpuGap& a, const GpuGap& b) const {
    if (a.time() != b.time()) return a.time() > b.time();
    return a.begin < b.begin;
  }
};

class GpusAtWork : public Analysis {
 public:
  struct OfGpu {                // what a GPU did for a process
    std::uint64_t process = 0;  // its number in the trace; 0: it made no call
    std::uint32_t pid = 0;
    Name comm;  // of the process
    std::int64_t device = 0;
    std::uint64_t first = 0, last = 0;  // from its first work to the end of its last
    Busy busy;
    Durations idle;
    IdleTimes by_cause;
    std::array<std::uint64_t, IDLE_CAUSES> gaps{};     // how many of each main cause
    std::map<std::uint32_t, std::uint64_t> meanwhile;  // ns of idle time by function
    Durations to_start;                                // from call to beginning on the GPU
    Durations to_idle_start;                           // the same for what an idle GPU began
    std::uint64_t operations = 0, unjoined = 0,
                  graphs = 0;                   // `graphs`: whole launches among kernels
    std::uint64_t graphs_with_collectives = 0;  // of these: how long they took is not known
    std::uint64_t late = 0, late_time = 0;
    bool of_ranges = false;        // as the part is
    GpuCurve curve;                // of the whole trace
    std::uint64_t in_windows = 0;  // how much time was measured, if not all
    ShareOfWindows by_window;      // how busy it was in each

    // In which it was measured.
    std::uint64_t window() const { return in_windows ? in_windows : last - first; }
    // In windows more may have been submitted than could be done in their time.
    std::uint64_t busy_time() const { return work_time().busy; }
    // In certain ranges it was idle before their work; the rest of the window is of others.
    std::uint64_t idle_time() const {
      return of_ranges ? by_cause.total() : window() - busy_time();
    }
    // Waiting while only collectives ran, by the rank that they waited for.
    TimeByRank waiting() const { return curve.between(first, last).waiting; }
    WorkTime work_time() const { return cut_to(busy.times(), window()); }
  };
  struct Kernel {
    std::uint64_t count = 0, time = 0, longest = 0;
  };
  struct Waited {
    std::uint64_t calls = 0, time = 0;
  };
  struct NotReported {
    std::uint32_t pid = 0;
    std::string why;
  };

  static constexpr std::size_t MAX_KEPT = 1 << 19;

  // Figures are of `part`, and what reaches beyond it is cut. The longest `gaps` are kept.
  GpusAtWork(Names& names, std::size_t gaps, Part part = {}, std::size_t most_kept = MAX_KEPT);

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  bool measured() const { return seen_; }                   // the trace has GPUs' own times
  const std::vector<OfGpu>& gpus() const { return gpus_; }  // the busiest first
  // Or it says why it has none.
  bool any() const { return seen_ || !not_reported_.empty(); }
  bool is_measured(std::uint64_t process) const;
  void set_name(std::uint64_t process, Name comm);
  // What collectives of a process waited for on a GPU, once all is read.
  void set_waits(std::uint64_t process, std::int64_t device, std::vector<WaitForRank> waits);
  // The busiest of the process; null: none did anything.
  const OfGpu* of_process(std::uint64_t process) const;
  std::span<const GpuGap> longest(std::size_t at_most = ALL_GAPS) const {
    return first_of(longest_, at_most);
  }
  const IdleByRange& idle_by_range() const { return idle_by_range_; }
  // By their time on all GPUs.
  const std::vector<std::pair<Name, Kernel>>& kernels() const { return kernels_; }
  const std::vector<NotReported>& not_reported() const { return not_reported_; }
  // Copies to the host of an asynchronous kind that were done when their calls returned.
  const Waited& waited() const { return waited_; }
  std::uint64_t left_out() const { return left_out_; }  // operations of GPUs beyond MAX_GPUS
  std::uint64_t waits_left_out() const { return waits_left_out_; }  // for ranks
  // The share of GPU operations that are missing, in percent: calls without a report, and reports
  // without valid times.
  double missing_share() const { return missing_share_; }
  // GPU times were recorded in windows; figures are of these.
  bool sampled() const { return sampled_; }
  // In words, what OfGpu::window() is.
  std::string_view window_text() const {
    return sampled_ ? "in its windows" : "from first to last work";
  }
  bool is_whole_graphs() const { return whole_graphs_; }
  std::string name_of(Name kernel) const;  // short
  // What a thread's iteration waited for; empty if its work is no longer kept.
  CriticalPath path_of(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                       std::uint64_t end) const;
  const Names& names() const { return names_; }

 private:
  static constexpr std::size_t MAX_GPUS = 256;      // of all processes
  static constexpr std::size_t MAX_KERNELS = 4096;  // kept apart
  static constexpr std::size_t MAX_FUNCTIONS = 256;
  static constexpr std::size_t MAX_GRAPHS = 1 << 16;  // launches whose first node was seen
  static constexpr std::size_t MAX_NOT_REPORTED = 64, MAX_WHY = 256;

  struct Ran {
    std::uint64_t begin = 0, end = 0, call = 0;
    std::uint64_t issued = 0, returned = 0;  // when the call began and ended
    std::uint64_t depends = 0;
    const RangePlace* place = nullptr;  // in which the call was made
    std::uint32_t tid = 0, gpu = 0, queue = 0;
    std::size_t window = 0;  // in which it was submitted; 0 if it is always measured
    Name name;
    WorkKind kind;
    bool joined = false, has_to_wait = false, is_node = false;
    bool wanted = true;  // as its line is
  };
  struct State {  // a GPU for a process
    OfGpu figures;
    bool any = false;                                // something is settled
    std::uint64_t settled = 0;                       // the beginning of the last that is
    Ran last;                                        // the one that ends last
    Busy whole;                                      // of the whole trace
    WorkPieces pieces;                               // of it, for the curve
    std::map<std::size_t, std::uint64_t> by_window;  // ns at work
    std::uint64_t before_window = 0;                 // ns at work before the last of these
    HashSet<std::uint64_t> started;                  // launches of graphs
  };

  void copied_to_host(const Line& line);
  void work(const Line& line);
  State* state_of(const Line& line, std::uint32_t& index);
  void sort_kept();
  void settle_half();
  void settle(Ran ran);
  void count_kernel(const Ran& ran);
  // `at_once`: it was issued when the GPU had nothing to do.
  void started(const Ran& ran, State& gpu, bool at_once);
  void gap(const Ran& ran, State& gpu);
  // Null: the process is always measured, or never.
  const MeasuredWindows* windows_of(std::uint32_t pid) const;
  void window_began(State& gpu);
  void take_windows(State& gpu);
  IdleTimes causes(const Ran& ran, const State& gpu, std::uint64_t from, std::uint64_t to);
  void in_part(const Ran& ran, State& gpu, const IdleTimes& whole);
  void close(State& gpu);
  void take_facts(const TraceFacts& facts);

  Names& names_;
  Part part_;
  std::size_t most_kept_;
  ShortNames short_names_;
  Name copy_, fill_, others_;
  ThreadCalls calls_;
  std::vector<Ran> kept_;  // after the end: the latest, in order
  std::uint64_t settled_until_ = 0;
  std::vector<std::uint64_t> process_of_gpu_;
  std::vector<State> states_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::int64_t>, std::uint32_t> by_key_;
  ThreadTime meanwhile_;  // of the gap that is looked at
  Largest<GpuGap, LongerGpuGap> longest_gaps_;
  IdleByRange idle_by_range_;
  std::unordered_map<std::uint32_t, Kernel> by_kernel_;
  std::vector<OfGpu> gpus_;
  std::vector<GpuGap> longest_;
  std::vector<std::pair<Name, Kernel>> kernels_;
  std::vector<NotReported> not_reported_;
  Waited waited_;
  std::uint64_t left_out_ = 0, waits_left_out_ = 0;
  double missing_share_ = 0;
  bool whole_graphs_ = false, seen_ = false;
  bool sampled_ = false, finishing_ = false;
  HashMap<std::uint32_t, MeasuredWindows> windows_;  // by pid
  bool takes_calls_ = false;  // by the header, there may be operations to join
};

// Only if anything is measured.
Json gpus_at_work_json(const GpusAtWork& times, std::size_t gaps_at_most = ALL_GAPS);
Json gpu_gaps_columns();  // of idle times, for the page of `report`
// The same for people, with the gaps. First what the process's busiest GPU did in
// [begin, end), the inference, unless that is empty.
struct InferenceTime {
  std::uint64_t process = 0, begin = 0, end = 0;
};
void add_gpus_at_work(Page& page, const GpusAtWork& times, const InferenceTime& inference,
                      std::size_t at_most, GapsBy by = GapsBy::gap);
// The kernels that took most of the GPUs' time.
void add_gpu_kernels(Page& page, const GpusAtWork& times, std::size_t at_most);
// What the figures do not say by themselves.
void add_gpu_notes(Page& page, const GpusAtWork& times);
// "host in CUDA calls 60.1 %, launch latency of the GPU 12.0 %": the largest few shares of `whole`.
std::string causes_text(const IdleTimes& times, std::uint64_t whole, std::size_t at_most);
// `time`: in which all of it happened.
Json communication_json(const WorkTime& work, const TimeByRank& waiting, std::uint64_t time);
// "rank 1", or "rank 1 and 2 others": the one that was waited for longest.
std::string awaited_text(const TimeByRank& waiting);
// Without why it was idle.
Json gpu_share_json(const GpuCurve::Share& share);

}  // namespace cudabpf::analyze
