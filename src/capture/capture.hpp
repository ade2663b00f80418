// One capture, from the first record to the last: its own thread takes records from a source, has
// them correlated, and keeps all counts.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "correlate/correlator.hpp"
#include "cudabpf/function_filter.hpp"
#include "cudabpf/sink.hpp"
#include "cudabpf/source.hpp"

namespace cudabpf {

class Capture {
 public:
  Capture(std::unique_ptr<Source> source, FunctionFilter filter)
      : source_(std::move(source)), filter_(std::move(filter)) {}
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Source& source() { return *source_; }

  // Fills in what is known about the capture and its source. Now is the trace's ts 0.
  void describe(Session& session);

  // Writes the header and starts the reader. From now on events reach `sink`, on the reader's
  // thread. Processes selected earlier are already traced: their records are waiting.
  Result<> start(Sink& sink, const Session& session);

  // A selected process is already running: its `process` line comes from /proc.
  void announce(std::uint32_t pid);
  // Lets the source look for news. To be called when one of its descriptors is readable, and every
  // fraction of a second.
  void look() { note(source_->look()); }

  // News that comes from elsewhere than the source, such as how busy the GPUs are. From any thread,
  // between start() and stop().
  void note(News news);

  // Stops the source, takes its last records and ends the trace.
  Totals stop(std::string reason, std::optional<int> command_status);

  // How many traced processes run, as of the reader's last poll.
  std::uint64_t processes() const { return processes_; }
  // Waits until all records made before this call have reached the sink. False: that takes too
  // long, or the trace is ending.
  bool settle() const;
  // No traced process runs, judging by all records made before this call.
  bool all_ended() const;

 private:
  Correlator::Options correlator_options(const Session& session);
  void read_loop();
  void take(std::span<const std::byte> record);
  Source::Polled drain();
  void drain_to_the_end();
  void let_sinks_write();
  void pause(std::chrono::milliseconds time);
  void wake_reader() const;
  void lose(const LossEvent& loss);
  void report_losses(bool last = false);
  void report_tallies();
  void forget_processes();
  void deliver_notes();
  static ProcessIdentity identity_of(std::uint32_t pid);
  std::uint64_t now() const;  // ns since the trace began

  std::unique_ptr<Source> source_;
  const FunctionFilter filter_;
  Sink* sink_ = nullptr;
  std::uint64_t begin_ns_ = 0;
  bool times_gpus_ = false;  // what GPUs do is recorded
  std::unique_ptr<Correlator> correlator_;
  std::map<std::uint32_t, ProcessIdentity> known_ahead_;  // of announced processes

  std::thread reader_;
  std::atomic<bool> ending_{false};    // the trace's last moment is known
  std::atomic<bool> stopping_{false};  // nothing more will come
  std::atomic<std::uint64_t> processes_{0};
  std::atomic<std::uint64_t> drains_{0};  // how often all waiting records were taken
  // Ends the reader's pause.
  mutable std::mutex wake_mutex_;
  mutable std::condition_variable wake_;
  mutable bool woken_ = false;

  // Used by the reader.
  std::uint64_t received_ = 0;
  bool processes_came_ = false;   // since its last poll
  std::uint64_t read_until_ = 0;  // CLOCK_MONOTONIC; what was made before then was taken
  std::uint64_t bad_records_ = 0;
  std::vector<std::uint32_t> selected_;  // processes that were announced and may still run
  // Processes that have ended without a record that says so, as of this time on CLOCK_MONOTONIC.
  std::vector<std::uint32_t> ended_unseen_;
  std::uint64_t ended_looked_at_ = 0;
  Source::Losses losses_{};                            // reported so far
  std::array<std::uint64_t, KEPT> tables_reported_{};  // left out of each, as reported so far
  std::uint64_t losses_read_at_ = 0, tallies_read_at_ = 0;

  // From other threads to the reader, which alone may use the sink.
  std::mutex notes_mutex_;
  News news_;
  std::vector<std::uint32_t> announced_;
};

}  // namespace cudabpf
