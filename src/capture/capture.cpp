#include "capture/capture.hpp"

#include <linux/capability.h>

#include <chrono>
#include <functional>
#include <utility>

#include "cudabpf/record.hpp"
#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

// The reader polls, because the traced thread would pay for waking it. It pauses as long as the
// source allows, since each poll costs more than a few hundred records, and only briefly when a
// poll has found much.
constexpr auto SHORT_PAUSE = std::chrono::milliseconds(1);
constexpr auto LONG_PAUSE = std::chrono::milliseconds(10);
constexpr std::uint64_t WATCHFUL_NS = 100'000'000;
constexpr std::uint64_t LOSSES_EVERY_NS = 100'000'000;

}  // namespace

Capture::~Capture() {
  if (reader_.joinable()) stop("failed", std::nullopt);
}

std::uint64_t Capture::now() const { return now_ns(CLOCK_MONOTONIC) - begin_ns_; }

void Capture::describe(Session& session) {
  session.profile = to_string(filter_.profile);
  session.only = filter_.only;
  session.exclude = filter_.exclude;
  for (ApiId library : filter_.libraries) session.only_libraries.emplace_back(api(library).key);
  session.shapes = filter_.selects_some_of(ApiId::cublas);
  session.blocks = filter_.selects_some_of(ApiId::c10);
  session.left_out = kinds_left_out([this](const Function& f) { return filter_.records(f); });
  session.returns = filter_.returns;
  source_->describe(session);
  times_gpus_ = !session.gpu_timing.empty();
  ClockReadings clocks = clocks_now();
  begin_ns_ = session.monotonic_ns = clocks.monotonic;
  session.realtime_ns = clocks.realtime;
  session.boottime_ns = clocks.boottime;
  source_->begin(begin_ns_);
}

Correlator::Options Capture::correlator_options(const Session& session) {
  Correlator::Options options;
  options.begin_ns = begin_ns_;
  options.begin_boottime_ns = session.boottime_ns;
  options.driver_device = [this](std::uint32_t number) { return source_->device(number); };
  options.driver_version = DriverVersion::parse(session.driver);
  options.entry_only = [this](const Function& f) { return filter_.entry_only(f); };
  options.coverage = Coverage::of([this](const Function& f) { return filter_.records(f); });
  options.drops_of = [this](ThreadId thread) { return source_->drops(thread); };
  return options;
}

ProcessIdentity Capture::identity_of(std::uint32_t pid) {
  privileges::Raised looking({CAP_SYS_PTRACE});
  Procfs procfs;
  ProcessIdentity identity = procfs.process(static_cast<pid_t>(pid));
  identity.rank = rank_variables(procfs.environment(static_cast<pid_t>(pid)));
  return identity;
}

Result<> Capture::start(Sink& sink, const Session& session) {
  sink_ = &sink;
  correlator_ = std::make_unique<Correlator>(
      sink, [this](std::uint16_t number) { return source_->function(number); },
      [this](std::uint32_t pid) {
        auto known = known_ahead_.extract(pid);
        return known ? std::move(known.mapped()) : identity_of(pid);
      },
      correlator_options(session));
  TRY(source_->start([this](std::span<const std::byte> record) { take(record); }));
  // Once the trace is seen to have begun, they may end any moment.
  for (std::uint32_t pid : announced_) known_ahead_[pid] = identity_of(pid);
  sink.begin(session);
  deliver_notes();
  reader_ = std::thread([this] { read_loop(); });
  return ok();
}

void Capture::take(std::span<const std::byte> bytes) {
  received_++;
  if (auto record = parse_record(bytes)) {
    correlator_->on_record(*record);
    processes_came_ |= record->process != nullptr;
  } else {
    bad_records_++;
  }
}

void Capture::announce(std::uint32_t pid) {
  std::lock_guard lock(notes_mutex_);
  announced_.push_back(pid);
}

void Capture::note(News news) {
  constexpr std::size_t MAX_SAMPLES = 1 << 14;  // the reader may wait for a slow disk
  std::lock_guard lock(notes_mutex_);
  if (std::size_t more = news.gpu_samples.size(); more && news_.gpu_samples.size() >= MAX_SAMPLES) {
    std::uint64_t ts = news.gpu_samples.front().ts;
    news.gpu_samples.clear();
    news.losses.push_back({Loss::gpu_sample, more, ts, ts, "cudabpf's queue of samples was full"});
  }
  news_.add(std::move(news));
}

void Capture::deliver_notes() {
  News news;
  std::vector<std::uint32_t> announced;
  {
    std::lock_guard lock(notes_mutex_);
    news = std::exchange(news_, {});
    announced.swap(announced_);
  }
  if (news.driver) correlator_->driver_is(*news.driver);
  for (GpuError& error : news.gpu_errors) correlator_->gpu_error_logged(std::move(error));
  for (const GpuSample& sample : news.gpu_samples) sink_->gpu_sample(sample);
  for (std::uint32_t pid : announced) correlator_->processes().announce(pid, now());
  selected_.insert(selected_.end(), announced.begin(), announced.end());
  for (const Library& library : news.libraries) sink_->library(library);
  for (const LossEvent& loss : news.losses) lose(loss);
}

void Capture::lose(const LossEvent& loss) {
  losses_[static_cast<std::size_t>(loss.reason)] += loss.count.value_or(1);
  sink_->lost(loss);
}

void Capture::report_losses(bool last) {
  std::uint64_t until = now();
  for (LossEvent& loss : source_->audit(last)) {
    loss.since = losses_read_at_;
    loss.until = until;
    lose(loss);
  }
  Source::Losses counted = source_->losses();
  auto add = [&](Loss reason, std::uint64_t total) {
    counted[static_cast<std::size_t>(reason)] += total;
  };
  add(Loss::python_stack, correlator_->stacks_missed());
  add(Loss::out_pointer, correlator_->outs_missed());
  add(Loss::driver_return, correlator_->driver_returns_missed());
  add(Loss::bad_record, bad_records_ + correlator_->bad_records());
  for (std::size_t i = 0; i < LOSS_COUNT; i++) {
    // Losses that come as news are never counted here; others may have been reported already.
    if (counted[i] <= losses_[i]) continue;
    sink_->lost({static_cast<Loss>(i), counted[i] - losses_[i], losses_read_at_, until, {}});
    losses_[i] = counted[i];
  }
  for (std::size_t i = 0; i < KEPT; i++) {
    auto what = static_cast<Kept>(i);
    std::uint64_t left_out = correlator_->bounds().all_left_out(what);
    if (left_out == tables_reported_[i]) continue;
    News news;
    news.losses.push_back({Loss::table_full, left_out - tables_reported_[i], losses_read_at_, until,
                           std::string(to_string(what))});
    note(std::move(news));
    tables_reported_[i] = left_out;
  }
  losses_read_at_ = until;
}

void Capture::report_tallies() {
  tallies_read_at_ = now();
  Tallies tallies = source_->take_tallies();
  if (!tallies.empty()) drain();  // whoever made these calls has begun before
  sink_->tallied(tallies);
}

bool Capture::settle() const {
  constexpr auto PATIENCE = std::chrono::seconds(1);  // the reader may wait for a slow disk
  auto give_up = std::chrono::steady_clock::now() + PATIENCE;
  // The drain in progress may already be past the last record; the next one is not.
  for (std::uint64_t wanted = drains_ + 2; drains_ < wanted;) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    wake_reader();
    std::this_thread::sleep_for(SHORT_PAUSE);
  }
  return true;
}

bool Capture::all_ended() const { return settle() && processes_ == 0; }

// A caller that waits for a process to end must not wait for a record that was lost, or was never
// made because the process ended just before it was selected.
void Capture::forget_processes() {
  if (read_until_ < ended_looked_at_) return;  // the record may be among those not read yet
  auto has_ended = [this](std::uint32_t pid) { return !source_->is_alive(pid); };
  const TracedProcesses& processes = correlator_->processes();
  for (std::uint32_t pid : ended_unseen_)
    if (processes.known(pid) && has_ended(pid)) {
      correlator_->forget_process(pid);
      source_->forget_process(pid);
    }
  std::erase_if(selected_, [&](std::uint32_t pid) { return !processes.known(pid); });
  ended_unseen_ = source_->may_miss_exits() ? processes.pids() : selected_;
  std::erase_if(ended_unseen_, std::not_fn(has_ended));
  ended_looked_at_ = now_ns(CLOCK_MONOTONIC);
}

Source::Polled Capture::drain() {
  Source::Polled polled = source_->poll();
  read_until_ = polled.until;
  processes_.store(correlator_->processes().alive(), std::memory_order_relaxed);
  if (!polled.unfinished) drains_.fetch_add(1, std::memory_order_release);
  return polled;
}

// First what was being read when tracing ended, then what has been made since. Ending a trace need
// not wait for a process that keeps a gigabyte of records in its rings. The limit is on the time in
// which this thread ran, so that a busy machine loses no more.
void Capture::drain_to_the_end() {
  constexpr std::uint64_t PATIENCE_NS = 500'000'000;
  std::uint64_t give_up = now_ns(CLOCK_THREAD_CPUTIME_ID) + PATIENCE_NS;
  for (int finished = 0; finished < 2;) {
    if (!drain().unfinished) {
      finished++;
    } else if (now_ns(CLOCK_THREAD_CPUTIME_ID) > give_up) {
      source_->abandon();
      drain();
      return;
    }
  }
}

void Capture::read_loop() {
  // For looking into /proc, and for reading counts, which some kernels leave to the privileged.
  privileges::keep_only(filter_.tally ? Capabilities{CAP_SYS_PTRACE, CAP_BPF}
                                      : Capabilities{CAP_SYS_PTRACE});
  std::uint64_t watchful_until = now() + WATCHFUL_NS;  // a command is about to begin
  while (!stopping_) {
    deliver_notes();
    Source::Polled polled = drain();
    if (now() - tallies_read_at_ >= sink_->oldest_tallies_ns()) report_tallies();
    if (now() - losses_read_at_ >= LOSSES_EVERY_NS) {
      report_losses();
      forget_processes();
      correlator_->settle_gpu_errors(now());
      correlator_->settle_gpu_operations(read_until_);
      // A trace that is ending may not begin another file, though its last records still come.
      if (!ending_) let_sinks_write();
    }
    // While processes come and go, poll often: /proc knows the next one only while it lives.
    if (std::exchange(processes_came_, false)) watchful_until = now() + WATCHFUL_NS;
    if (polled.unfinished) continue;
    pause(polled.much || now() < watchful_until ? SHORT_PAUSE : LONG_PAUSE);
  }
}

void Capture::let_sinks_write() {
  class Open : public OpenCallsNow {
   public:
    Open(const Correlator& correlator, std::uint64_t until)
        : correlator_(correlator), until_(until) {}
    void each(const Visit& visit) const override { correlator_.each_open(until_, visit); }

   private:
    const Correlator& correlator_;
    std::uint64_t until_;
  };
  sink_->open_calls(Open(*correlator_, read_until_));
  sink_->flush();
}

void Capture::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(wake_mutex_);
  wake_.wait_for(lock, time, [this] { return woken_; });
  woken_ = false;
}

void Capture::wake_reader() const {
  {
    std::lock_guard lock(wake_mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

Totals Capture::stop(std::string reason, std::optional<int> command_status) {
  note(source_->last_look());
  std::uint64_t duration_ns = now();
  ending_ = true;
  correlator_->stop_at(begin_ns_ + duration_ns);
  source_->stop();
  stopping_ = true;
  wake_reader();
  if (reader_.joinable()) reader_.join();
  deliver_notes();
  drain_to_the_end();
  correlator_->finish();
  report_tallies();
  report_losses(true);
  deliver_notes();
  Totals totals;
  totals.duration_ns = duration_ns;
  totals.counts = correlator_->counts();
  totals.processes = correlator_->processes().begun();
  totals.accounts = source_->accounts();
  totals.accounts.received = received_;
  totals.tallied = source_->tally_accounts();
  totals.losses = losses_;
  totals.kernel_names = correlator_->kernel_names().counts();
  if (times_gpus_) totals.gpu_operations = correlator_->gpu_operation_counts();
  totals.clocks = clocks_now();
  totals.clock_error = clock_error();
  totals.command_status = command_status;
  totals.reason = std::move(reason);
  sink_->end(totals);
  return totals;
}

}  // namespace cudabpf
