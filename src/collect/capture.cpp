#include "collect/capture.hpp"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "collect/machine.hpp"
#include "util/console/log.hpp"
#include "util/system/clock.hpp"

namespace cudabpf {

namespace {

// The reader polls: a wake-up from the kernel would be paid by the traced thread. It rests as long
// as the ring can bear it, since each look costs it more than some hundred records do; it comes
// back soon where a look has found much.
constexpr auto SHORT_PAUSE = std::chrono::milliseconds(1);
constexpr auto LONG_PAUSE = std::chrono::milliseconds(10);
constexpr unsigned MUCH = 32;  // that part of the ring
constexpr std::uint64_t WATCHFUL_NS = 100'000'000;
constexpr std::uint64_t LOSSES_EVERY_NS = 100'000'000;

// Kernel counters and the losses they stand for.
constexpr std::pair<abi::cb_counter, Loss> KERNEL_LOSSES[] = {
    {abi::CB_DROPPED_ENTRY, Loss::ring_entry},     {abi::CB_DROPPED_RETURN, Loss::ring_return},
    {abi::CB_DROPPED_PROCESS, Loss::ring_process}, {abi::CB_DROPPED_NAME, Loss::ring_name},
    {abi::CB_DROPPED_DRIVER, Loss::ring_driver},
};

}  // namespace

Result<std::unique_ptr<Capture>> Capture::open(CaptureOptions options) {
  if (auto permitted = check_permissions(); !permitted) return permitted.error();
  if (auto supported = check_kernel(); !supported) return supported.error();
  auto reader = elf::Reader::start();
  if (!reader) return reader.error();
  std::unique_ptr<Capture> capture(new Capture(std::move(options)));
  auto features = Features::detect(
      capture->options_.disabled_features,
      {.driver = capture->options_.driver, .one_process = !capture->options_.only_in.empty()});
  if (!features) return features.error();
  capture->features_ = *features;

  auto probes =
      ProbeSet::load(*features, {capture->options_.ring_size, capture->options_.follow_children,
                                 capture->options_.driver, capture->options_.only_in});
  if (!probes) return probes.error();
  capture->probes_ = std::move(*probes);
  if (features->has(feature::PROCESS_EVENTS))
    if (auto attached = capture->probes_->attach_process_events(); !attached)
      return attached.error();
  if (capture->options_.driver)
    if (auto attached = capture->attach_driver(); !attached) return attached.error();
  capture->libraries_.emplace(
      std::move(*reader), *capture->probes_, capture->numbers_,
      TracedLibraries::Options{capture->options_.filter, capture->options_.libraries,
                               capture->options_.library_path,
                               features->has(feature::WATCH_MAPPINGS)});
  for (const Feature& feature : features->list())
    if (feature.state == Feature::State::no && !feature.disabled &&
        feature.name != feature::UPROBE_SESSION &&  // the trace is the same
        !feature::is_of_driver(feature.name))       // one of those will do
      log::hint("without {}: {}", feature.name, feature.why);
  if (auto attached = capture->libraries_->attach_known(); !attached) return attached.error();
  return capture;
}

Capture::~Capture() {
  if (reader_.joinable()) stop("failed", std::nullopt);
  if (ring_) ring_buffer__free(ring_);
}

std::uint64_t Capture::now() const { return now_ns(CLOCK_MONOTONIC) - begin_ns_; }

Capabilities Capture::needs() const {
  Capabilities needed;
  for (const KeptCapability& capability : kept_capabilities(*features_, options_.driver))
    needed = needed | Capabilities{capability.number};
  return needed;
}

void Capture::describe(Session& session) {
  describe_machine(session);
  session.profile = to_string(options_.filter.profile);
  session.only = options_.filter.only;
  session.exclude = options_.filter.exclude;
  session.left_out =
      kinds_left_out([this](const Function& f) { return options_.filter.records(f); });
  session.returns = options_.filter.returns;
  session.follow = options_.follow_children;
  session.driver_traced = options_.driver;
  session.driver_way = driver_way_;
  session.ring_size = options_.ring_size;
  session.pids = options_.pids;
  session.libraries = libraries_->all();
  session.features = features_->list();
  begin_ns_ = session.monotonic_ns = now_ns(CLOCK_MONOTONIC);
  libraries_->begin(begin_ns_);
  session.realtime_ns = now_ns(CLOCK_REALTIME);
  session.boottime_ns = now_ns(CLOCK_BOOTTIME);
}

Result<> Capture::start(Sink& sink, const Session& session) {
  sink_ = &sink;
  Correlator::Options options;
  options.begin_ns = begin_ns_;
  options.begin_boottime_ns = session.boottime_ns;
  options.driver_device = [this](std::uint32_t number) { return driver_device(number); };
  options.driver_version = DriverVersion::parse(session.driver);
  options.entry_only = [this](const Function& f) { return options_.filter.entry_only(f); };
  options.coverage = Coverage::of([this](const Function& f) { return options_.filter.records(f); });
  options.drops_of = [this](std::uint32_t tid) { return probes_->drops(tid); };
  correlator_ = std::make_unique<Correlator>(
      sink, [this](std::uint16_t id) { return numbers_.find(id); },
      [](std::uint32_t pid) {
        privileges::Raised looking({CAP_SYS_PTRACE});
        return Procfs().process(static_cast<pid_t>(pid));
      },
      options);
  auto on_record = [](void* self, void* data, std::size_t size) {
    auto& capture = *static_cast<Capture*>(self);
    capture.received_++;
    auto record = parse_record({static_cast<const std::byte*>(data), size});
    if (record) {
      capture.correlator_->on_record(*record);
      capture.processes_came_ |= record->process != nullptr;
    } else
      capture.reported_bad_++;
    return 0;
  };
  {
    privileges::Raised rights({CAP_BPF});
    ring_ = ring_buffer__new(bpf_map__fd(probes_->ring()), on_record, this, nullptr);
  }
  if (!ring_) return errno_error("mapping the ring buffer", "give a smaller --ring-size");
  sink.begin(session);
  deliver_notes();  // who was announced may be gone in a moment
  reader_ = std::thread([this] { read_loop(); });
  return ok();
}

void Capture::announce(std::uint32_t pid) {
  std::lock_guard lock(notes_mutex_);
  announced_.push_back(pid);
}

std::vector<int> Capture::watch_fds() const {
  std::vector<int> fds = libraries_->watch_fds();
  if (kernel_log_) fds.push_back(kernel_log_->fd());
  return fds;
}

void Capture::attach_new_libraries() {
  privileges::Raised rights(needs());
  note(libraries_->look());
}

void Capture::note(TracedLibraries::News news) {
  std::lock_guard lock(notes_mutex_);
  for (Library& library : news.libraries) noted_libraries_.push_back(std::move(library));
  for (LossEvent& loss : news.losses) noted_losses_.push_back(std::move(loss));
}

void Capture::note_loss(LossEvent event) {
  std::lock_guard lock(notes_mutex_);
  noted_losses_.push_back(std::move(event));
}

void Capture::deliver_notes() {
  std::vector<LossEvent> losses;
  std::vector<Library> libraries;
  std::vector<std::uint32_t> announced;
  std::vector<GpuError> errors;
  {
    std::lock_guard lock(notes_mutex_);
    losses.swap(noted_losses_);
    libraries.swap(noted_libraries_);
    announced.swap(announced_);
    errors.swap(noted_errors_);
    if (noted_version_) correlator_->driver_is(*std::exchange(noted_version_, std::nullopt));
  }
  for (GpuError& error : errors) correlator_->gpu_error_logged(std::move(error));
  for (std::uint32_t pid : announced) correlator_->processes().announce(pid, now());
  for (const Library& library : libraries) sink_->library(library);
  for (const LossEvent& loss : losses) {
    losses_[static_cast<std::size_t>(loss.reason)] += loss.count.value_or(1);
    sink_->lost(loss);
  }
}

void Capture::report_losses() {
  std::uint64_t until = now();
  auto report = [&](Loss reason, std::uint64_t total) {
    std::uint64_t& known = losses_[static_cast<std::size_t>(reason)];
    if (total == known) return;
    sink_->lost({reason, total - known, losses_read_at_, until, {}});
    if (!info(reason).degraded) progress_.lost += total - known;
    known = total;
  };
  for (auto [counter, reason] : KERNEL_LOSSES) report(reason, probes_->counter(counter));
  report(Loss::out_pointer, correlator_->outs_missed());
  report(Loss::driver_skipped, driver_skipped_);
  report(Loss::driver_return, correlator_->driver_returns_missed());
  report(Loss::bad_record, reported_bad_ + correlator_->bad_records());
  for (std::size_t i = 0; i < TABLES; i++) {
    auto table = static_cast<Table>(i);
    std::uint64_t left_out = correlator_->bounds().all_left_out(table);
    if (left_out == tables_told_[i]) continue;
    note_loss({Loss::table_full, left_out - tables_told_[i], losses_read_at_, until,
               std::string(to_string(table))});
    tables_told_[i] = left_out;
  }
  losses_read_at_ = until;
}

bool Capture::is_alive(std::uint32_t pid) const {
  bool exists = kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
  return exists && (!features_->has(feature::PROCESS_EVENTS) || probes_->is_traced(pid));
}

bool Capture::all_ended() const {
  constexpr auto PATIENCE = std::chrono::seconds(1);  // the reader may wait for a slow disk
  auto give_up = std::chrono::steady_clock::now() + PATIENCE;
  // The drain that is under way may have passed the last record; the one after it has not.
  for (std::uint64_t wanted = progress_.drains + 2; progress_.drains < wanted;) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    wake_reader();
    std::this_thread::sleep_for(SHORT_PAUSE);
  }
  return progress_.processes == 0;
}

// Whoever waits for a process's end must not wait for a record that was lost.
void Capture::forget_processes() {
  if (!features_->has(feature::PROCESS_EVENTS) || probes_->counter(abi::CB_DROPPED_PROCESS))
    correlator_->forget_processes([this](std::uint32_t pid) { return !is_alive(pid); });
}

// True if there was much to read.
bool Capture::drain() {
  bool much = ring__avail_data_size(ring_buffer__ring(ring_, 0)) > options_.ring_size / MUCH;
  ring_buffer__consume(ring_);
  progress_.calls.store(correlator_->counts().calls, std::memory_order_relaxed);
  progress_.processes.store(correlator_->processes().alive(), std::memory_order_relaxed);
  progress_.drains.fetch_add(1, std::memory_order_release);
  return much;
}

void Capture::read_loop() {
  privileges::keep_only({CAP_SYS_PTRACE});
  std::uint64_t watchful_until = now() + WATCHFUL_NS;  // a command is about to begin
  while (!stopping_) {
    deliver_notes();
    bool much = drain();
    if (now() - losses_read_at_ >= LOSSES_EVERY_NS) {
      report_losses();
      forget_processes();
      correlator_->settle_gpu_errors(now());
      // Once the trace ends no file of it may begin, though its last records still come.
      if (!ending_) sink_->flush();
    }
    // Where processes come and go, /proc tells of the next one only while it lives.
    if (std::exchange(processes_came_, false)) watchful_until = now() + WATCHFUL_NS;
    pause(much || now() < watchful_until ? SHORT_PAUSE : LONG_PAUSE);
  }
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
  read_gpu_errors();
  {
    privileges::Raised rights(needs());
    note(libraries_->finish());
  }
  std::uint64_t duration_ns = now();
  ending_ = true;
  correlator_->stop_at(begin_ns_ + duration_ns);
  probes_->detach();
  if (options_.driver) driver_skipped_ = probes_->driver().skipped();
  stopping_ = true;
  wake_reader();
  if (reader_.joinable()) reader_.join();
  deliver_notes();
  drain();
  correlator_->finish();
  report_losses();
  deliver_notes();
  Totals totals;
  totals.duration_ns = duration_ns;
  totals.counts = correlator_->counts();
  totals.accounts.entered = probes_->counter(abi::CB_ENTERED);
  totals.accounts.emitted = probes_->counter(abi::CB_EMITTED);
  totals.accounts.received = received_;
  for (auto [counter, loss] : KERNEL_LOSSES) totals.accounts.dropped += probes_->counter(counter);
  totals.losses = losses_;
  totals.memory = correlator_->memory();
  totals.command_status = command_status;
  totals.reason = std::move(reason);
  sink_->end(totals);
  return totals;
}

}  // namespace cudabpf
