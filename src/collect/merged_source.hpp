// Two sources as one: each records what the other does not. Each thread's records come in
// the order in which they were made, whichever source has made them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cudabpf/source.hpp"

namespace cudabpf {

class MergedSource final : public Source {
 public:
  enum class Of : std::uint8_t { calls, others };

  // `calls` knows the functions that records name. One of the two knows the driver's devices and
  // the processes.
  MergedSource(std::unique_ptr<Source> calls, std::unique_ptr<Source> others, Of processes)
      : calls_(std::move(calls)),
        others_(std::move(others)),
        processes_(processes == Of::calls ? *calls_ : *others_) {}

  void describe(Session& session) const override;
  void begin(std::uint64_t begin_ns) override;
  Result<> start(OnRecord on_record) override;
  void select_process(std::uint32_t pid) override;
  void select_cgroup(const CgroupFolder& folder) override;
  void select_all() override;
  std::vector<int> watch_fds() const override;
  News look() override;
  News last_look() override;
  void stop() override;
  std::size_t libraries_attached() const override { return calls_->libraries_attached(); }
  bool waits_for_libraries() const override { return calls_->waits_for_libraries(); }
  Capabilities needs() const override { return calls_->needs() | others_->needs(); }

  Polled poll() override;
  void abandon() override;
  std::vector<LossEvent> audit(bool last) override;
  const Function* function(std::uint16_t number) const override { return calls_->function(number); }
  DriverDevice device(std::uint32_t number) const override { return processes_.device(number); }
  Tallies take_tallies() override { return calls_->take_tallies(); }
  std::uint32_t drops(ThreadId thread) const override;
  bool may_miss_exits() const override { return processes_.may_miss_exits(); }

  std::size_t awaited() const override { return processes_.awaited(); }
  void forget_process(std::uint32_t pid) override;
  bool is_alive(std::uint32_t pid) const override { return processes_.is_alive(pid); }
  Losses losses() const override;
  Accounts accounts() const override;
  TallyAccounts tally_accounts() const override { return calls_->tally_accounts(); }

 private:
  using From = Of;

  // What one thread has made at one source and has not been handed over yet, in its order.
  class Lane {
   public:
    void add(std::span<const std::byte> record);
    bool empty() const { return at_ == bytes_.size(); }
    std::size_t size() const { return bytes_.size(); }
    std::span<std::byte> first();
    void remove_first();

   private:
    std::vector<std::byte> bytes_;  // each record behind its size, at a multiple of 8
    std::size_t at_ = 0;            // of the first one's size
  };
  // For interrupts, the CPU takes the place of the thread, in process 0.
  struct LaneOf {
    ThreadId thread;
    From from = From::calls;
    auto operator<=>(const LaneOf&) const = default;  // NOLINT(modernize-use-nullptr): see ThreadId
  };

  // Records that wait for those of the other source take no more than this, besides what one poll
  // brings: beyond it, only the source that is behind is polled.
  static constexpr std::size_t MAX_KEPT = std::size_t{64} << 20;
  // Threads with losses whose number is kept.
  static constexpr std::size_t MAX_DROPS = 1 << 16;

  void keep(From from, std::span<const std::byte> record);
  std::uint32_t drops_of_both(ThreadId thread, From from, std::uint32_t drops);
  void make_room_for_drops();
  void hand_over_until(std::uint64_t until);
  void hand_over(From from, std::span<std::byte> record);

  std::unique_ptr<Source> calls_, others_;
  const Source& processes_;
  OnRecord on_record_;
  std::map<LaneOf, Lane> lanes_;
  std::size_t kept_ = 0;                 // bytes, in all lanes
  Polled calls_polled_, others_polled_;  // what the last polls said
  // How many records a thread had lost, according to the last record from each source; only of
  // threads with losses.
  std::map<ThreadId, std::array<std::uint32_t, 2>> drops_;
  std::atomic<bool> stopped_{false};
};

}  // namespace cudabpf
