// Records from a library inside the traced processes (inside/): without root, and without traps
// into the kernel.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collect/driver_devices.hpp"
#include "collect/function_numbers.hpp"
#include "collect/inside/handshakes.hpp"
#include "collect/inside/planned_library.hpp"
#include "collect/inside/tape_memory.hpp"
#include "collect/inside/traced_rings.hpp"
#include "cudabpf/source.hpp"

namespace cudabpf {

class InsideSource final : public Source, private Host {
 public:
  struct Place {
    std::string listener;   // the path of the socket: see Listener::choose_path
    uid_t user = 0;         // the user that the command runs as
    DriverDevices devices;  // of the NVIDIA driver, if operations on them are recorded
    // Who may come: the command and its children; the one process that learns of the listener, and
    // its children; any process of the machine.
    enum class For : std::uint8_t { command, one_process, all };
    For whom = For::command;
  };
  static Result<std::unique_ptr<Source>> open(SourceOptions options, Place place);
  ~InsideSource() override;

  void describe(Session& session) const override;
  void begin(std::uint64_t begin_ns) override { begin_ns_ = begin_ns; }
  Result<> start(OnRecord on_record) override;
  void select_process(std::uint32_t pid) override { selected_ = pid; }
  void select_cgroup(const CgroupFolder&) override {}
  void select_all() override {}
  std::vector<int> watch_fds() const override;
  News look() override;
  News last_look() override;
  void stop() override;
  bool waits_for_libraries() const override { return true; }
  std::size_t libraries_attached() const override { return libraries_attached_; }
  Capabilities needs() const override { return {}; }

  Polled poll() override;
  void abandon() override { rings_.abandon(); }
  std::vector<LossEvent> audit(bool last) override { return rings_.audit(last); }
  const Function* function(std::uint16_t number) const override { return numbers_.find(number); }
  DriverDevice device(std::uint32_t number) const override;
  Tallies take_tallies() override { return {}; }  // all calls are recorded
  std::uint32_t drops(ThreadId thread) const override { return rings_.drops(thread); }
  bool may_miss_exits() const override { return false; }

  std::size_t awaited() const override;
  void forget_process(std::uint32_t) override {}  // a process has shared memory, or none
  bool is_alive(std::uint32_t pid) const override;
  Losses losses() const override;
  Accounts accounts() const override;
  TallyAccounts tally_accounts() const override { return {}; }

 private:
  InsideSource(SourceOptions options, Place place, elf::Reader reader);
  Kin kin(pid_t pid) override;
  Admission admit(const Arrival& arrival) override;
  void depart(pid_t pid) override;
  void stopped(Connection connection, std::uint32_t inner_tid) override;
  Admission with_tape(const Arrival& arrival);
  Result<int> tape_of(std::uint32_t pid, std::uint32_t inner_pid);
  void date(News& news);
  void miss_process_that_never_came(News& news);
  abi::ci_driver driver_plan() const;
  // The command has started the process, or one of its ancestors.
  bool belongs(pid_t pid) const;
  bool knows_the_listener(pid_t pid) const;
  std::size_t count_awaited() const;

  const SourceOptions options_;
  const Place place_;
  FunctionNumbers numbers_;
  const abi::ci_libraries other_libraries_;  // traced besides libcuda
  const elf::Reader reader_;
  PlannedLibraries libraries_;
  static constexpr std::size_t MAX_OF_ALL = 1024;  // processes at once, where all may come
  std::optional<Listener> listener_;               // until it is handed on
  std::optional<Handshakes> handshakes_;
  std::uint64_t begin_ns_ = 0;
  std::uint32_t selected_ = 0;
  std::size_t libraries_attached_ = 0;
  // By process; the reading thread may have let go of one that is here, but not the other way
  // round.
  std::map<std::uint32_t, std::weak_ptr<SharedRings>> known_;
  struct TapedOne {
    std::shared_ptr<TapeMemory> tape;
    std::uint32_t inner_pid = 0;
  };
  std::map<std::uint32_t, TapedOne> taped_;
  std::map<std::uint32_t, std::uint32_t> without_tape_;  // yet: the pids in their own namespaces

  // The one process that this cudabpf was started for: whether it has come, and whether it has
  // gone. It may live on for a moment then, but is no longer recorded.
  bool came_ = false, missed_ = false;
  std::atomic<bool> departed_ = false;

  std::mutex comings_and_goings_;  // for the thread that reads
  std::vector<Newcomer> newcomers_;
  std::vector<std::uint32_t> leaving_;

  OnRecord on_record_;
  const abi::ci_clock clock_;  // of all shared rings
  TracedRings rings_;
};

}  // namespace cudabpf
