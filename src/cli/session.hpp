// A capture from its first line to its last, whatever it traces: the trace file, the status line,
// the signals, the conditions that end it, the table at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/capture.hpp"
#include "cli/flags/capture_flags.hpp"
#include "cli/hang_reports.hpp"
#include "cli/metrics_server.hpp"
#include "cli/signals.hpp"
#include "cli/started_command.hpp"
#include "cli/top_screen.hpp"
#include "collect/gpu/gpu_sampler.hpp"
#include "sink/flight_recorder.hpp"
#include "sink/live.hpp"
#include "sink/log_sink.hpp"
#include "sink/run_summary.hpp"
#include "sink/status.hpp"
#include "sink/tee.hpp"
#include "sink/top/top_sink.hpp"
#include "sink/warnings.hpp"
#include "taping/taper.hpp"
#include "trace/files/jsonl.hpp"
#include "trace/write/redacted.hpp"

namespace cudabpf::cli {

class CaptureSession {
 public:
  // Opens the output and the source, so everything that the user may have got wrong shows up here.
  using OpenSource = std::function<Result<std::unique_ptr<Source>>(SourceOptions options)>;
  static Result<std::unique_ptr<CaptureSession>> open(const CaptureFlags& flags,
                                                      SourceOptions options,
                                                      const OpenSource& open_source);

  ~CaptureSession() { signals_.leave_to_others(false); }

  // Selects what to trace, then writes the header and starts reading: the header shows that tracing
  // has begun. `session` already has what the command line says: the mode, and the targets.
  Result<> begin(Session session, const std::function<void(Capture&)>& select);

  // When to end, besides signals and --duration.
  struct Until {
    StartedCommand* command = nullptr;  // it, and each traced child, has ended
    std::vector<std::uint32_t> pids;    // all of these, and their traced children, have ended
  };
  // Runs until then, ends the trace and reports what it found. Returns the exit status.
  Result<int> run_until(const Until& until);

  // Where the trace is, or its first part.
  std::string trace_path() const { return trace_->written().path; }

 private:
  CaptureSession() = default;

  struct Ended {
    std::string reason;  // as the trace's `end` line puts it
    bool by_signal = false;
  };
  void open_switches(const CaptureFlags& flags);
  // Where events go.
  Result<std::vector<Sink*>> open_sinks(const CaptureFlags& flags);
  Result<> open_trace(JsonlOptions output, bool redact, std::vector<Sink*>& sinks);
  void open_top(const CaptureFlags& flags, std::vector<Sink*>& sinks);
  void watch_hangs(const CaptureFlags& flags, std::vector<Sink*>& sinks);
  Result<> open_recorder(const FlightRecorder::Options& options, std::vector<Sink*>& sinks);
  bool reader_gone() const;
  void open_sampler(const CaptureFlags& flags, std::optional<std::uint64_t> period_ns);
  Ended wait_for_end(const Until& until);
  void write_what_is_kept();
  void wait_if_it_ends(StartedCommand& command);
  // Why a trace that began at `since` must end now; empty: it need not.
  std::string limit_reached(std::uint64_t since, const Until& until);
  bool disk_is_low() const;
  void say_end(Totals totals, const TraceWritten& written);

  Signals signals_;  // first: threads inherit the signals that it blocks
  // For what top shows. Messages go to the screen that is made last: screen_.
  std::unique_ptr<Screen> watched_;
  std::unique_ptr<Screen> screen_;                  // second: members destroyed before it may print
  std::uint64_t duration_ns_ = 0, most_bytes_ = 0;  // 0: no limit
  std::uint64_t hang_ns_ = 0;                       // 0: nobody watches
  std::uint64_t looked_at_disk_ = 0;
  bool quiet_ = false, inside_ = false;
  std::unique_ptr<JsonlSink> trace_;        // null: what happens is only watched
  std::unique_ptr<RedactedSink> redacted_;  // null: nothing is left out
  std::unique_ptr<LogSink> log_;
  Warnings warnings_;
  std::unique_ptr<StatusSink> status_;
  std::unique_ptr<LiveSink> live_;
  std::unique_ptr<TopScreen> top_screen_;  // null: what is watched is shown as text
  std::unique_ptr<TopSink> top_;
  std::unique_ptr<FlightRecorder> recorder_;  // null: nothing is kept
  std::unique_ptr<HangReports> hangs_;        // null: nobody watches for them
  std::unique_ptr<TeeSink> sink_;
  std::unique_ptr<Capture> capture_;
  std::unique_ptr<SwitchReader> switches_;  // until the sampler has it
  std::string switches_why_not_;
  std::unique_ptr<GpuSampler> sampler_;  // null: not wanted
  MetricsServer* metrics_ = nullptr;     // null: nobody asks for metrics
  taping::Taper* taper_ = nullptr;       // null: no iteration is to be captured
};

}  // namespace cudabpf::cli
