// Records from programs in the kernel, attached to libcuda's functions and to the driver's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collect/bpf/callers.hpp"
#include "collect/bpf/driver_watch.hpp"
#include "collect/bpf/features.hpp"
#include "collect/bpf/probe_set.hpp"
#include "collect/bpf/python_walks.hpp"
#include "collect/bpf/tally_maps.hpp"
#include "collect/bpf/traced_libraries.hpp"
#include "collect/function_numbers.hpp"
#include "cudabpf/source.hpp"

struct ring_buffer;

namespace cudabpf {

class BpfSource final : public Source {
 public:
  // Checks permissions and kernel, loads the programs, finds and probes every libcuda.
  static Result<std::unique_ptr<Source>> open(SourceOptions options);

  void describe(Session& session) const override;
  void begin(std::uint64_t begin_ns) override;
  Result<> start(OnRecord on_record) override;
  void select_process(std::uint32_t pid) override;
  void select_cgroup(const CgroupFolder& folder) override { probes_->select_cgroup(folder); }
  void select_all() override { probes_->select_all(); }
  std::vector<int> watch_fds() const override;
  News look() override;
  News last_look() override;
  void stop() override;
  std::size_t libraries_attached() const override {
    return libraries_ ? libraries_->attached() : 0;
  }
  bool waits_for_libraries() const override { return false; }
  Capabilities needs() const override;

  Polled poll() override;
  void abandon() override {}
  std::vector<LossEvent> audit(bool) override { return {}; }
  const Function* function(std::uint16_t number) const override { return numbers_.find(number); }
  DriverDevice device(std::uint32_t number) const override;
  Tallies take_tallies() override;
  std::uint32_t drops(ThreadId thread) const override { return probes_->drops(thread.tid); }
  bool may_miss_exits() const override;

  std::size_t awaited() const override { return 0; }
  void forget_process(std::uint32_t pid) override { probes_->unselect_process(pid); }
  bool is_alive(std::uint32_t pid) const override;
  Losses losses() const override;
  Accounts accounts() const override;
  TallyAccounts tally_accounts() const override;

 private:
  struct RingDeleter {
    void operator()(ring_buffer* ring) const;
  };

  BpfSource(SourceOptions options, Features features)
      : options_(std::move(options)), features_(std::move(features)) {}
  // `reader`: of libraries, if calls are recorded.
  Result<> attach(std::optional<elf::Reader> reader);
  void hand_over(std::span<const std::byte> record);

  const SourceOptions options_;
  const Features features_;
  FunctionNumbers numbers_;
  std::unique_ptr<ProbeSet> probes_;
  std::optional<TracedLibraries> libraries_;  // if calls are recorded
  std::optional<Callers> callers_;            // likewise
  std::optional<TallyMaps> tallies_;          // if some are only counted
  std::optional<DriverWatch> driver_;
  std::optional<PythonWalks> python_;  // if slow calls have their stacks
  OnRecord on_record_;
  std::unique_ptr<ring_buffer, RingDeleter> ring_;
  std::uint64_t read_until_ = 0;
};

}  // namespace cudabpf
