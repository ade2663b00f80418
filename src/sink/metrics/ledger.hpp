// Sums that only grow, of calls by workload and class: what metrics print.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cudabpf/call_class.hpp"
#include "cudabpf/sink.hpp"
#include "sink/metrics/held_memory.hpp"
#include "sink/metrics/sampled_work.hpp"
#include "sink/metrics/workload.hpp"
#include "state/rank_positions.hpp"
#include "util/hash.hpp"

namespace cudabpf {

// How much a rank passes to a collective: at most so much, few classes of it.
enum class CollectiveSize : std::uint8_t { k8, k256, m8, m256, more };
inline constexpr std::array COLLECTIVE_SIZES{
    std::pair("8KiB", std::uint64_t{8} << 10), std::pair("256KiB", std::uint64_t{256} << 10),
    std::pair("8MiB", std::uint64_t{8} << 20), std::pair("256MiB", std::uint64_t{256} << 20),
    std::pair("more", UINT64_MAX)};

// A workload's sums, or those of the whole node.
struct WorkloadSums {
  struct OfClass {
    std::uint64_t calls = 0;   // that have begun, or, of those that are recorded, ended
    std::uint64_t failed = 0;  // of them
    std::uint64_t bytes = 0;   // that they were to copy
    Times times;               // of those that have ended
  };
  Workload workload;
  std::array<OfClass, CALL_CLASSES> classes{};
  std::map<std::pair<ApiId, int>, std::uint64_t> errors;  // failed calls by result
  std::uint64_t ioctls = 0;
  // By operation and size, those of one rank.
  struct OfCollective {
    std::uint64_t calls = 0, bytes = 0, time_ns = 0;  // on the host
  };
  std::map<std::pair<Op, CollectiveSize>, OfCollective> collectives;
  std::uint64_t unknown_graph_launches = 0;  // which collectives these ran is not known
  std::uint64_t behind_ns = 0;               // how long its rank that is furthest behind has been
  SampledWork work;
  WindowLoads loads;
  std::uint64_t held = 0, most_held = 0;  // bytes of its allocations, without host memory
  std::uint64_t processes = 0;            // that are alive
  std::uint64_t oldest_open_ns = 0;       // how long its oldest call has been open, at least
};

// A GPU's latest figures.
struct LedgerGpu {
  SampledGpu gpu;
  GpuSample latest;  // the figures that are read seldom are from an earlier sample
};

// Those who read pages. A scraper keeps what it reads; a page that is pushed may not arrive.
enum class MetricsReader : std::uint8_t { scraper, receiver };
inline constexpr std::size_t METRICS_READERS = 2;

struct LedgerPage {
  std::uint64_t number = 0;  // the first is 1
  std::vector<WorkloadSums> workloads;
  WorkloadSums node;                    // of all, also of workloads that are gone
  std::uint64_t workloads_refused = 0;  // that count as (other), since there were too many
  std::uint64_t processes_refused = 0;
  std::vector<LedgerGpu> gpus;
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> xids;  // by number and device
  std::array<std::uint64_t, LOSS_COUNT> lost{};                         // events, by reason
  std::array<std::uint64_t, LOSS_COUNT> uncounted{};  // how often it is not known how many
  std::map<ApiId, std::pair<std::uint64_t, std::uint64_t>> libraries;  // probed, and failed to
  bool driver_traced = false;
  bool open_calls_known = false;
};

class Ledger {
 public:
  static constexpr std::size_t MAX_PROCESSES = 16384, MAX_XIDS = 256, MAX_RESULTS = 64,
                               MAX_KERNELS = 4096;

  struct Options {
    // At most so many label sets in each metric, besides those of other workloads: a workload is
    // admitted if there is room for all its classes, and keeps its place until it is gone. Programs
    // that have all else in common get half of the places, so that nobody can take them all.
    std::size_t most_series = 1000;
    bool has_receiver = false;  // to which pages are pushed
  };
  Ledger(Options options, PodNames pods)
      : most_workloads_(std::max<std::size_t>(options.most_series / CALL_CLASSES, 1)),
        has_receiver_(options.has_receiver),
        pods_(std::move(pods)),
        memory_([this](std::uint32_t pid, std::uint64_t more, std::uint64_t less) {
          held_changed(pid, more, less);
        }) {}

  void begin(const Session& session);
  void call(const Call& call);
  void tallied(const Tallies& tallies);
  void open_calls(const OpenCallsNow& calls);
  void driver_call(const DriverCall& call);
  void gpu_error(const GpuError& error);
  void gpu_sample(const GpuSample& sample);
  void gpu_operation(const GpuOperation& operation);
  void gpu_window(const GpuWindow& window);
  void process(const Process& process);
  void library(const Library& library);
  void lost(const LossEvent& loss);
  // Time has passed: forgets processes and workloads that are gone.
  void tick(std::uint64_t now_ns);
  // Processes that do not run any more, though nobody said that they ended.
  void look_for_lost_ends(const std::function<bool(std::uint32_t pid)>& is_running);

  // What there is to print. Workloads that are gone stay until each reader has two pages of them,
  // for two minutes at least.
  LedgerPage page();
  void reached(MetricsReader reader, std::uint64_t page_number);
  // Why pods are shown by their uids; empty: there is no reason that cudabpf knows.
  const std::string& unreadable_pods() const { return pods_.unreadable(); }

 private:
  struct Series {
    WorkloadSums sums;
    std::size_t users = 0;                                // processes that may still add to it
    std::uint64_t gone_ns = 0;                            // when the last of these was gone
    std::uint64_t page_before = 0;                        // the last one that was made by then
    std::array<unsigned, METRICS_READERS> pages_since{};  // that reached each reader
  };
  struct Of {
    Workload workload;
    Series* series = nullptr;  // null: it has added nothing yet
    std::uint64_t held = 0;
    bool alive = false;
    std::uint64_t ended_ns = 0;        // unless it is alive
    std::uint64_t oldest_open_ns = 0;  // how long its oldest recorded call has been open
  };
  // Sums of a living process, as they came last.
  struct Before {
    Tally tally;
    std::uint64_t open_since_ns = 0;  // 0: no call is open
  };

  Of& of(std::uint32_t pid);
  // A process that calls nothing needs no series.
  Series& series_of(Of& of);
  Series& admit(const Workload& workload);
  void leave(Of& of);
  void change_alive(Of& of, bool alive);
  void held_changed(std::uint32_t pid, std::uint64_t more, std::uint64_t less);
  template <typename Add>
  void add(Of& of, Add add) {
    add(series_of(of).sums);
    add(node_);
  }
  void collective(const Call& call);
  void graph_launched(const Call& call);
  bool has_tallies(std::uint32_t pid) const;
  KernelClass kernel_class_of(const KernelName* kernel);
  bool is_known(const Series& gone) const;
  static void add_error(WorkloadSums& sums, ApiId api, int result, std::uint64_t calls);
  void tallied(const Tally& now);
  void tallied(const ClassTally& now);
  void tallied(const FailureTally& now);

  const std::size_t most_workloads_;
  const bool has_receiver_;
  PodNames pods_;
  HeldMemory memory_;
  ranks::Positions positions_;
  std::uint64_t now_ns_ = 0, begin_ns_ = 0;  // CLOCK_MONOTONIC
  std::uint64_t pages_ = 0;                  // that were made
  std::map<Workload, std::unique_ptr<Series>> series_;
  std::unique_ptr<Series> others_ = std::make_unique<Series>();
  WorkloadSums node_;
  HashMap<std::uint32_t, std::unique_ptr<Of>> processes_;
  HashMap<std::string, KernelClass> kernels_;  // by name; a part of those that there were
  std::unique_ptr<Of> other_processes_;        // those that found no room
  // The source bounds how many there are of each.
  std::map<std::pair<std::uint32_t, const Function*>, Before> functions_;
  std::map<std::pair<std::uint32_t, CallClass>, Times> classes_;
  std::map<std::pair<std::uint32_t, int>, std::uint64_t> failures_;
  LedgerPage kept_;  // what is not of workloads
};

}  // namespace cudabpf
