#include "cli/session.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>

#include "cli/request/invoker.hpp"
#include "cli/run_answer.hpp"
#include "collect/machine.hpp"
#include "sink/run_summary.hpp"
#include "sink/top/top_json.hpp"
#include "sink/top/top_text.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"
#include "util/system/pidfd.hpp"
#include "util/system/privileges.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf::cli {

namespace {

// Reports at once which processes end, where the kernel can (Linux 5.3).
class Endings {
 public:
  explicit Endings(const std::vector<std::uint32_t>& pids) {
    for (std::uint32_t pid : pids)
      if (Fd process = open_pidfd(static_cast<pid_t>(pid))) running_.push_back(std::move(process));
  }
  void add_to(std::vector<pollfd>& polled) const {
    for (const Fd& process : running_) polled.push_back({process.get(), POLLIN, 0});
  }
  void note(const std::vector<pollfd>& polled) {
    std::erase_if(running_, [&](const Fd& process) {
      return std::any_of(polled.begin(), polled.end(),
                         [&](const pollfd& one) { return one.fd == process.get() && one.revents; });
    });
  }

 private:
  std::vector<Fd> running_;
};

void report_dump(const Result<FlightRecorder::Dump>& dump) {
  if (!dump)
    return log::warning("{}{}{}", dump.error().message, dump.error().hint.empty() ? "" : "; ",
                        dump.error().hint);
  log::hint("{}written: {}, the last {} with {}{}",
            dump->because == "error"   ? "something failed; "
            : dump->because == "asked" ? ""
                                       : dump->because + "; ",
            dump->path, human_time(dump->covered_ns), count_of(dump->events, "event", "events"),
            dump->cut ? "; there was no room to keep more (--keep-most)" : "");
}

// Shows text if there is room for it now, and the last text in any case.
auto shown_on(Screen& screen) {
  return [&screen](std::string_view text, bool last) {
    if (!last) return screen.offer(text);
    screen.show(text);
    return true;
  };
}

TopSink::Show text_shown_on(Screen& screen, bool as_json) {
  return [&screen, as_json, text = TopText()](const TopInterval& interval, bool last) mutable {
    if (as_json) return shown_on(screen)(top_json(interval), last);
    TopText next = text;
    bool shown = shown_on(screen)(next.text(interval, screen.terminal()), last);
    if (shown) text = next;
    return shown;
  };
}

}  // namespace

Result<std::unique_ptr<CaptureSession>> CaptureSession::open(const CaptureFlags& flags,
                                                             SourceOptions options,
                                                             const OpenSource& open_source) {
  log::set_quiet(flags.quiet || flags.log);
  // If the trace's reader goes away, that is an error to handle, not a reason to die.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // as is a limit on the size of files
  auto duration = TRY(flags.duration_ns()), most_bytes = TRY(flags.most_bytes());
  auto hang_ns = TRY(flags.hang_ns());
  TRY(flags.output_options());
  auto sample_period_ns = TRY(flags.sample_period_ns());
  std::unique_ptr<CaptureSession> session(new CaptureSession);
  if (flags.recorder) session->signals_.take_requests();
  session->duration_ns_ = duration;
  session->most_bytes_ = most_bytes;
  session->hang_ns_ = hang_ns;
  session->quiet_ = flags.quiet || flags.log;
  options.give_up = [fd = session->signals_.fd(), ended = std::move(options.give_up)] {
    return is_readable(fd) || ended();
  };
  FunctionFilter filter = options.filter;
  auto source = TRY(open_source(std::move(options)));
  session->capture_ = std::make_unique<Capture>(std::move(source), std::move(filter));
  Source& records = session->capture_->source();
  session->open_switches(flags);
  // From here on this process is its caller: files are made with the caller's own rights.
  TRY(privileges::drop(caller().user, records.needs()));
  if (flags.watch)
    session->watched_ = std::make_unique<Screen>(STDOUT_FILENO, session->signals_.hurry_fd());
  session->screen_ = std::make_unique<Screen>(STDERR_FILENO, session->signals_.hurry_fd());
  auto sinks = TRY(session->open_sinks(flags));
  session->sink_ = std::make_unique<TeeSink>(std::move(sinks));
  session->open_sampler(flags, sample_period_ns);
  if (records.libraries_attached() == 0 && !records.waits_for_libraries())
    log::warning(
        "no libcuda found yet; it will be traced as soon as a program loads it (or name it with "
        "--library)");
  return session;
}

// Runs while this process still has the rights for it.
void CaptureSession::open_switches(const CaptureFlags& flags) {
  if (!flags.switches) return;
  Driver driver = nvidia_driver();
  auto opened =
      SwitchReader::open(rm::machine_system(), {driver.version, driver.flavour == "open"});
  if (opened)
    switches_ = std::move(*opened);
  else
    switches_why_not_ = opened.error().message;
}

Result<std::vector<Sink*>> CaptureSession::open_sinks(const CaptureFlags& flags) {
  std::vector<Sink*> sinks;
  if (flags.watch) {
    open_top(flags, sinks);
    if (flags.recorder) TRY(open_recorder(*flags.recorder, sinks));
    watch_hangs(flags, sinks);
    return sinks;
  }
  if ((metrics_ = flags.metrics)) sinks.push_back(&metrics_->sink());
  if (flags.sums_alone) {
    sinks.push_back(&warnings_);
    if (flags.recorder) TRY(open_recorder(*flags.recorder, sinks));
    if (flags.recorder) metrics_->take_dumps(*recorder_);
    return sinks;
  }
  TRY(open_trace(TRY(flags.output_options()), flags.redact, sinks));
  if (flags.log) {
    log_ = std::make_unique<LogSink>([](std::string line) { log::note("{}", line); },
                                     [trace = trace_.get()] { return trace->written(); });
    sinks.push_back(log_.get());
  }
  if ((taper_ = flags.taper)) {
    TRY(taper_->open([this] { return capture_->settle(); }));
    sinks.push_back(taper_);
  }
  sinks.push_back(&warnings_);
  watch_hangs(flags, sinks);
  if (flags.live) {
    sinks.push_back((live_ = std::make_unique<LiveSink>(shown_on(*screen_))).get());
  } else if (!quiet_) {
    status_ =
        std::make_unique<StatusSink>(*screen_, [trace = trace_.get()] { return trace->bytes(); });
    sinks.push_back(status_.get());
  }
  return sinks;
}

Result<> CaptureSession::open_trace(JsonlOptions output, bool redact, std::vector<Sink*>& sinks) {
  output.output.hurry_fd = signals_.hurry_fd();
  trace_ = TRY(JsonlSink::open(std::move(output)));
  if (redact) redacted_ = std::make_unique<RedactedSink>(*trace_);
  sinks.push_back(redact ? static_cast<Sink*>(redacted_.get()) : trace_.get());
  return ok();
}

void CaptureSession::open_top(const CaptureFlags& flags, std::vector<Sink*>& sinks) {
  TopSink::Show show;
  if (flags.on_screen) {
    top_screen_ = std::make_unique<TopScreen>(*screen_);
    show = [screen = top_screen_.get()](const TopInterval& interval, bool last) {
      return screen->take(interval, last);
    };
  } else {
    show = text_shown_on(*watched_, flags.as_json);
  }
  top_ = std::make_unique<TopSink>(*flags.watch, std::move(show));
  sinks.push_back(top_.get());
}

void CaptureSession::watch_hangs(const CaptureFlags& flags, std::vector<Sink*>& sinks) {
  if (!hang_ns_) return;
  std::string beside = trace_ ? trace_->written().path : default_output(false);
  if (beside == "-") beside = default_output(false);
  hangs_ = std::make_unique<HangReports>(hang_ns_, flags.redact ? "" : machine_name(),
                                         std::move(beside), recorder_.get());
  sinks.push_back(&hangs_->sink());
}

Result<> CaptureSession::open_recorder(const FlightRecorder::Options& options,
                                       std::vector<Sink*>& sinks) {
  recorder_ = TRY(FlightRecorder::open(options, report_dump));
  sinks.push_back(recorder_.get());
  return ok();
}

// Whether the reader of the trace, or of what is shown in its place, has gone.
bool CaptureSession::reader_gone() const {
  if (trace_) return trace_->reader_gone();
  if (metrics_) return false;  // nothing goes to stdout
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP | POLLNVAL));
}

void CaptureSession::open_sampler(const CaptureFlags& flags,
                                  std::optional<std::uint64_t> period_ns) {
  if (flags.no_sample) return;
  sampler_ = std::make_unique<GpuSampler>(nvml::load, period_ns, std::move(switches_));
  const Sampling& sampling = sampler_->sampling();
  if (flags.switches && switches_why_not_.empty() && !sampling.switches)
    switches_why_not_ = "the GPUs are not sampled: " + sampling.why_not;
  if (!switches_why_not_.empty())
    log::warning("which processes have the GPUs is not recorded: {}", switches_why_not_);
  if (!flags.sample.empty() && sampling.gpus.empty())
    log::warning("the GPUs are not sampled: {}", sampling.why_not);
}

Result<> CaptureSession::begin(Session session, const std::function<void(Capture&)>& select) {
  if (session.mode == "machine" && trace_)
    log::hint("tracing every process on this machine into {} {}until Ctrl-C",
              trace_->written().path,
              duration_ns_ ? fmt::format("for {}, or ", human_time(duration_ns_)) : "");
  describe_machine(session);
  session.rank = rank_variables(caller().environment);
  if (sampler_)
    session.sampling = sampler_->sampling();
  else
    session.sampling.why_not = "--no-sample";
  session.sampling.switches_why_not = switches_why_not_;
  capture_->describe(session);
  inside_ = session.source == "inside";
  select(*capture_);
  TRY(capture_->start(*sink_, session));
  if (top_screen_) top_screen_->start();
  if (metrics_) {
    TRY(metrics_->start());
    log::hint("metrics are at {}", metrics_->url());
  }
  if (recorder_)
    log::hint("the last events are kept in memory; {}`kill -USR1 {}` writes them",
              top_screen_ ? "w or " : "", ::getpid());
  if (sampler_)
    sampler_->start(session.monotonic_ns, [this](News news) { capture_->note(std::move(news)); });
  return ok();
}

// A trace without a command may grow unattended: it must not fill the disk.
bool CaptureSession::disk_is_low() const {
  if (!trace_) return false;
  auto space = trace_->space();
  if (!space || !is_low(*space)) return false;
  log::warning("the trace ends: only {} are left on its disk", human_bytes(space->available));
  return true;
}

std::string CaptureSession::limit_reached(std::uint64_t since, const Until& until) {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  if (duration_ns_ && now - since >= duration_ns_) return "duration";
  if (most_bytes_ && trace_ && trace_->bytes() >= most_bytes_) return "size";
  constexpr std::uint64_t LOOK_EVERY_NS = 1'000'000'000;
  if (until.command || now - looked_at_disk_ < LOOK_EVERY_NS) return {};
  looked_at_disk_ = now;
  return disk_is_low() ? "disk low" : "";
}

void CaptureSession::write_what_is_kept() {
  if (recorder_)
    recorder_->write_soon();
  else
    log::hint("w writes what --keep-last keeps; top was started without it");
}

CaptureSession::Ended CaptureSession::wait_for_end(const Until& until) {
  std::uint64_t begin = now_ns(CLOCK_MONOTONIC);
  bool waiting_for_command_to_stop = false;
  bool reported_children = false;
  Endings endings(until.pids);

  for (;;) {
    constexpr int TICK_MS = 200;
    std::vector<pollfd> polled{{signals_.fd(), POLLIN, 0}, {signals_.request_fd(), POLLIN, 0}};
    for (int fd : capture_->source().watch_fds()) polled.push_back({fd, POLLIN, 0});
    bool command_runs = until.command && !until.command->status();
    if (command_runs) polled.push_back({until.command->pidfd(), POLLIN, 0});
    if (top_screen_) polled.push_back({top_screen_->asked_fd(), POLLIN, 0});
    endings.add_to(polled);
    poll(polled.data(), polled.size(), TICK_MS);
    endings.note(polled);
    capture_->look();
    if (hangs_) hangs_->tell();

    TopScreen::Asks asks = top_screen_ ? top_screen_->asked() : TopScreen::Asks();
    if (asks.write || (recorder_ && signals_.requested())) write_what_is_kept();
    Signals::Got got = signals_.read();
    if (got.signal) {
      bool by_keys = got.from_terminal && (got.signal == SIGINT || got.signal == SIGQUIT);
      // The signal may have ended it already.
      bool command_has_it = command_runs && by_keys && !waiting_for_command_to_stop;
      if (!command_has_it) return {got.signal == SIGINT ? "interrupted" : "terminated", true};
      waiting_for_command_to_stop = true;
      log::hint("waiting for the command to end; Ctrl-C again ends the trace at once");
    }
    if (asks.end) return {"quit"};
    // A command runs on, and its end is waited for; other processes are not waited for.
    if (reader_gone() && !until.command) return {"reader gone"};
    if (std::string limit = limit_reached(begin, until); !limit.empty()) return {limit};
    if (until.command && until.command->status()) {
      if (waiting_for_command_to_stop) return {"command ended"};
      // An awaited process may have begun meanwhile: then it is known.
      std::size_t awaited = capture_->processes() ? 0 : capture_->source().awaited();
      if (!awaited && capture_->all_ended()) return {"command ended"};
      if (std::size_t children = capture_->processes() + awaited; !reported_children && children) {
        log::hint("the command has ended; {} still running and traced until Ctrl-C",
                  count_of(children, "of its children is", "of its children are"));
        reported_children = true;
      }
    }
    if (!until.pids.empty() &&
        std::none_of(until.pids.begin(), until.pids.end(),
                     [this](std::uint32_t pid) { return capture_->source().is_alive(pid); }) &&
        capture_->all_ended())
      return {"targets ended"};
  }
}

// A signal to the whole process group ends the command, too: what it does last and its status
// belong to the trace.
void CaptureSession::wait_if_it_ends(StartedCommand& command) {
  constexpr std::uint64_t TO_BEGIN_NS = 100'000'000, TO_END_NS = 5'000'000'000;
  constexpr int STEP_MS = 10;
  std::uint64_t since = now_ns(CLOCK_MONOTONIC);
  while (!command.status()) {
    std::uint64_t waited = now_ns(CLOCK_MONOTONIC) - since;
    if (waited > TO_END_NS || (waited > TO_BEGIN_NS && !Procfs().is_exiting(command.pid()))) return;
    pollfd polled[] = {{command.pidfd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
    poll(polled, std::size(polled), STEP_MS);
    if (polled[1].revents) return;  // checked again
  }
}

void CaptureSession::say_end(Totals totals, const TraceWritten& written) {
  RunEnd end;
  end.libraries = capture_->source().libraries_attached();
  end.inside = inside_;
  end.written = written;
  if (written.complete) {  // without a call, too: GPU errors and requests to the driver are there
    end.answer = summary_at_end(written, screen_->terminal());
    end.compresses = compresses_by(written);
  }
  end.totals = std::move(totals);
  screen_->show(render_summary(end, screen_->terminal()));
}

Result<int> CaptureSession::run_until(const Until& until) {
  Ended ended = wait_for_end(until);
  if (ended.by_signal && until.command) wait_if_it_ends(*until.command);
  signals_.leave_to_others(ended.by_signal);
  signals_.keep_blocked();
  std::optional<int> command_status = until.command ? until.command->status() : std::nullopt;
  if (sampler_) sampler_->stop([this] { capture_->look(); });
  if (taper_) taper_->close();
  Totals totals = capture_->stop(ended.reason, command_status);
  if (hangs_) hangs_->tell();
  if (metrics_) metrics_->stop();
  if (top_screen_) watched_->show(top_screen_->close());
  TraceWritten written = trace_ ? trace_->written() : TraceWritten();
  if (trace_ && !quiet_) say_end(std::move(totals), written);
  if (until.command && !command_status)
    log::hint("the command (pid {}) runs on, untraced", until.command->pid());
  if (command_status) return *command_status;
  return !trace_ || (written.complete && written.lost == 0) ? exit_code::OK
                                                            : exit_code::OUTPUT_FAILED;
}

}  // namespace cudabpf::cli
