// Figures collected while a trace is taken, for the summary at its end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cudabpf/sink.hpp"
#include "follow/gpu_figures.hpp"
#include "sink/run_memory.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"

namespace cudabpf {

struct Stats {
  struct Calls {  // to the functions that share an API name
    std::string name;
    std::uint64_t count = 0;
    std::uint64_t errors = 0;
    Durations durations;  // of calls that were seen to return
  };
  struct Transfers {
    std::string op;
    bool async = false;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  struct Launches {
    std::string kernel;  // its short name; empty: not known
    std::uint64_t count = 0;
  };
  struct Errors {
    std::string name;  // of the API function
    std::string error;
    std::uint64_t count = 0;
  };

  struct Driver {  // requests to the driver: a group of ioctls, or another operation
    std::string name;
    std::uint64_t count = 0;
    std::uint64_t failed = 0;
    Durations durations;
  };
  struct Caller {  // a CUDA function that made ioctls
    std::string name;
    std::uint64_t calls = 0;  // its calls that made any
    std::uint64_t ioctls = 0;
    std::uint64_t time = 0;
  };

  std::uint64_t count = 0;
  std::uint64_t processes = 0;
  std::uint64_t libraries = 0;       // copies of libcuda that were probed
  bool inside = false;               // calls are recorded inside the processes
  std::vector<Calls> calls;          // the longest total first
  std::vector<Transfers> transfers;  // the most bytes first
  std::vector<Launches> launches;    // the most first; in graphs, too
  std::uint64_t unknown_graphs = 0;  // launches of graphs of which it is not known what they hold
  std::vector<Errors> errors;        // likewise
  MemoryByKind memory{};
  LiveMemory::LeftOut memory_left_out;
  std::vector<Driver> driver_groups;   // the longest total first
  std::vector<Driver> ioctls;          // by control, class or name; the most first
  std::vector<Caller> driver_callers;  // the most time first
  struct Xid {
    std::uint32_t number = 0;
    std::string meaning, device;
    std::uint64_t count = 0;
  };
  std::vector<Xid> xids;
  GpusFigures gpus;
  std::string switches_why_not;  // --switches was given, and cannot be
};

class StatsSink : public Sink {
 public:
  StatsSink();
  ~StatsSink() override;

  void begin(const Session& session) override;
  void call(const Call& call) override;
  void driver_call(const DriverCall& call) override;
  void gpu_error(const GpuError& error) override;
  void gpu_sample(const GpuSample& sample) override { gpus_.add(sample); }
  void gpu_work(const GpuWork&) override {}
  void gpu_times(const GpuTimes&) override {}
  void tallied(std::span<const Tally>) override {}
  void process(const Process& process) override;
  void library(const Library& library) override { libraries_ += library.error.empty(); }
  void lost(const LossEvent&) override {}  // Totals has them all
  void flush() override {}
  void end(const Totals&) override {}

  Stats stats() const;

 private:
  struct OfFunction;
  struct Moved {
    std::uint64_t count = 0, bytes = 0;
  };
  struct Launched {  // where a kernel's launches are counted; the name may be freed and its place
    const KernelName* name = nullptr;  // reused, so the text is compared too
    std::pair<const std::string, std::uint64_t>* counter = nullptr;
  };

  std::vector<Stats::Calls> calls() const;
  OfFunction& of(const Function& function);
  void failed(const Call& call, OfFunction& of);
  void launched(const KernelName* name, std::uint64_t count);
  void launched_graph(const Call& call);
  void moved(const Call& call);

  std::uint64_t count_ = 0;
  std::vector<std::unique_ptr<OfFunction>> known_;  // by their place in the table
  std::unordered_map<const Function*, std::unique_ptr<OfFunction>> others_;
  std::map<std::pair<std::string, bool>, Moved> moved_;
  std::pair<const std::pair<std::string, bool>, Moved>* last_moved_ = nullptr;
  HashMap<std::string, std::uint64_t> launches_;
  std::array<Launched, 256> recent_launches_{};
  std::uint64_t unknown_graphs_ = 0;
  std::map<std::pair<std::string_view, std::optional<int>>, std::uint64_t> errors_;
  std::uint64_t processes_ = 0, libraries_ = 0;
  bool inside_ = false;
  RunMemory memory_;
  std::map<std::string, Stats::Driver> driver_groups_, ioctls_;
  std::map<std::string_view, Stats::Caller> driver_callers_;
  std::map<std::pair<std::uint32_t, std::string>, Stats::Xid> xids_;
  GpusFigures gpus_;
  std::string switches_why_not_;
};

}  // namespace cudabpf
