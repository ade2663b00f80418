// Watches for calls that stay open too long, and says which rank the others wait for: --watch-hang.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>

#include "cudabpf/sink.hpp"
#include "sink/hangs/hang.hpp"

namespace cudabpf::hangs {

class HangWatch : public PartialSink {
 public:
  // Once a call is overdue, others have this long to become overdue as well: then there is one
  // report of all of them.
  static constexpr std::uint64_t SETTLE_NS = 1'000'000'000;
  static constexpr std::uint64_t SHORTEST_NS = 1'000'000'000;
  static constexpr std::size_t MAX_PROCESSES = 4096;

  // What /proc says of a process: its state; 0: there is none.
  using StateOf = std::function<char(std::uint32_t pid)>;
  using OnHang = std::function<void(const Hang& hang)>;
  // All that was overdue has ended, after so long: who was named has come.
  using OnEnd = std::function<void(std::uint64_t lasted_ns)>;

  HangWatch(std::uint64_t overdue_ns, StateOf state_of, OnHang on_hang, OnEnd on_end)
      : overdue_ns_(overdue_ns),
        state_of_(std::move(state_of)),
        on_hang_(std::move(on_hang)),
        on_end_(std::move(on_end)) {}

  void begin(const Session& session) override { monotonic_ns_ = session.monotonic_ns; }
  void call(const Call& call) override;
  void process(const Process& process) override;
  void lost(const LossEvent& loss) override;
  void open_calls(const OpenCallsNow& calls) override;

 private:
  void look(std::uint64_t now);
  Doing& doing(std::uint32_t pid);

  const std::uint64_t overdue_ns_;
  const StateOf state_of_;
  const OnHang on_hang_;
  const OnEnd on_end_;
  std::uint64_t monotonic_ns_ = 0;  // when the trace began
  Positions positions_;
  Doings doings_;
  std::uint64_t lost_ = 0;
  std::uint64_t overdue_since_ = 0;  // when the first call was seen to be; 0: none is
  bool reported_ = false;            // what has been overdue since then
};

}  // namespace cudabpf::hangs
