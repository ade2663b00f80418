#include "taping/process_taper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "taping/tape_writer.hpp"
#include "util/console/log.hpp"
#include "util/console/terminal.hpp"
#include "util/system/clock.hpp"

namespace cudabpf::taping {

namespace {

constexpr std::uint64_t STEADY = 2;       // iterations after warm-up, before the first steady one
constexpr std::uint64_t RESTLESS = 1000;  // iterations, after which new code in each is the usual
constexpr std::uint64_t NOT_READY = 600;
constexpr auto PATIENCE = std::chrono::seconds(10);

}  // namespace

ProcessTaper::ProcessTaper(const Wanted& wanted, const Surroundings& around,
                           std::shared_ptr<TapedProcess> process)
    : wanted_(wanted), around_(around), process_(std::move(process)) {
  memory_.all_seen();
  manifest_ = around.manifest;
  captured_.pid = process_->pid();
  worker_ = std::thread([this] { run(); });
}

ProcessTaper::~ProcessTaper() { close(); }

void ProcessTaper::close() {
  {
    std::lock_guard lock(queue_mutex_);
    closed_ = true;
  }
  queued_.notify_all();
  if (worker_.joinable()) worker_.join();
  captured_.launches = history_.launches(0);
  if (captured_.done || !captured_.why_not.empty()) return;
  if (stage_ == Stage::watching)
    captured_.why_not = history_.why_not();
  else
    captured_.why_not = stage_ == Stage::approaching
                            ? "it ended before the iteration that was wanted began"
                            : "it ended within the iteration that was to be captured";
}

void ProcessTaper::stopped(std::unique_ptr<StoppedThread> thread) {
  {
    std::lock_guard lock(queue_mutex_);
    if (closed_) return thread->go_on(0);
    queue_.push_back(std::move(thread));
  }
  queued_.notify_all();
}

void ProcessTaper::call(const Call& call) {
  std::lock_guard lock(mutex_);
  if (!watches_) return;
  now_ = std::max(now_, call.ts + call.duration);
  memory_.call(call);
  handles_.call(call);
  history_.call(call);
  if (!keeps_ || call.parent || call.function->layer() != 0 || call.captured) return;
  KeptCall& kept = kept_.emplace_back(call);
  if (call.function->launches_graph()) kept.graph = handles_.graphs().executable(kept.word(0));
}

void ProcessTaper::lost() {
  std::lock_guard lock(mutex_);
  losses_++;
}

// ----- the worker

void ProcessTaper::run() {
  for (;;) {
    std::unique_ptr<StoppedThread> thread;
    {
      std::unique_lock lock(queue_mutex_);
      queued_.wait(lock, [this] { return closed_ || !queue_.empty(); });
      if (queue_.empty()) return;
      thread = std::move(queue_.front());
      queue_.pop_front();
    }
    std::uint64_t since = now_ns(CLOCK_MONOTONIC);
    Next next = serve(*thread);
    process_->hold(0);
    captured_.stood_ns += now_ns(CLOCK_MONOTONIC) - since;
    thread->go_on(next.launches, next.at_wait, next.tid);
  }
}

ProcessTaper::Next ProcessTaper::serve(StoppedThread& thread) {
  if (!around_.settle()) return give_up("its records could not be read in time");
  switch (stage_) {
    case Stage::watching:
      return watch(thread);
    case Stage::approaching:
      return approach(thread);
    case Stage::capturing: {
      auto next = go_to_end(thread);
      return next ? *next : give_up(next.error().message);
    }
    default:
      return {};
  }
}

ProcessTaper::Next ProcessTaper::give_up(std::string why) {
  stage_ = Stage::over;
  {
    std::lock_guard lock(mutex_);
    watches_ = keeps_ = false;
    kept_.clear();
  }
  process_->keep(abi::CI_KEEPS_NOTHING);
  captured_.why_not = std::move(why);
  return {};
}

bool ProcessTaper::is_wanted(const NextIteration& next) const {
  if (wanted_.iteration) return next.number >= wanted_.iteration;
  if (wanted_.after_ns) return now_ >= wanted_.after_ns;
  return next.number > next.warm_up + STEADY && (next.is_settled || next.number > RESTLESS);
}

// The next look is when it has launched as much again.
ProcessTaper::Next ProcessTaper::watch(StoppedThread& thread) {
  std::unique_lock lock(mutex_);
  auto next = history_.next_iteration();
  std::uint64_t launched = std::max(history_.launches(0), FIRST_STOP);
  if (!next || !is_wanted(*next)) {
    // The one that is wanted may come sooner. Iterations may be somewhat shorter than usual.
    if (next && wanted_.iteration) {
      std::uint64_t between = (wanted_.iteration - next->number) * next->launches;
      launched = std::min(launched, next->until + between - between / 10);
    }
    if (next && !next->is_settled) launched = std::max(launched / 8, FIRST_STOP);
    return {std::max<std::uint64_t>(launched, 1)};
  }
  next_ = *next;
  stage_ = Stage::approaching;
  steps_ = 0;
  lock.unlock();
  return approach(thread);
}

// Where the thread stands, its launch has not been recorded yet.
ProcessTaper::Next ProcessTaper::approach(StoppedThread& thread) {
  std::unique_lock lock(mutex_);
  auto next = history_.next_iteration();
  // Another thread than the one whose iterations these are may stand.
  bool is_its_own = next && (!next->tid || next->tid == thread.tid());
  if (!next || ++steps_ > 2 * next_.launches + FIRST_STOP) {
    stage_ = Stage::watching;
    return {FIRST_STOP};
  }
  lock.unlock();
  if (!is_its_own) return {1};
  if (next->until) return {next->until, next->tid ? thread.inner_tid() : 0, next->at_wait};
  next_ = *next;
  auto begun = begin_capture(thread);
  return begun ? *begun : give_up(begun.error().message);
}

Result<> ProcessTaper::still(StoppedThread& thread) {
  process_->hold(thread.inner_tid());
  auto until = std::chrono::steady_clock::now() + PATIENCE;
  auto is_late = [&] { return std::chrono::steady_clock::now() > until; };
  constexpr auto STEP = std::chrono::microseconds(200);
  while (process_->threads_in_calls()) {
    if (is_late()) return Error{"another of its threads stayed in a call of the driver", {}};
    std::this_thread::sleep_for(STEP);
  }
  if (!around_.settle()) return Error{"its records could not be read in time", {}};
  std::vector<std::uint64_t> streams = {0};
  {
    std::lock_guard lock(mutex_);
    if (handles_.captures()) return Error{"it was capturing a graph where the iteration began", {}};
    for (const auto& [handle, stream] : handles_.streams()) streams.push_back(handle);
  }
  for (std::uint64_t stream : streams)
    while (TRY(thread.order(abi::CI_IS_DONE, stream)).result == NOT_READY) {
      if (is_late()) return Error{why_late(), {}};
      std::this_thread::sleep_for(STEP);
    }
  auto drained = TRY(thread.order(abi::CI_DRAIN));
  if (drained.result)
    return Error{fmt::format("waiting for the GPU failed with {}", drained.result), {}};
  return ok();
}

// What the program does may be what the GPU waits for.
std::string ProcessTaper::why_late() const {
  std::lock_guard lock(mutex_);
  const auto& waits = handles_.waits_for_program();
  return "the GPU was not done within 10 s" +
         (waits.empty() ? "" : fmt::format("; it may wait for the program ({})", *waits.begin()));
}

Blocks ProcessTaper::blocks() const {
  using Kind = bundle::BlockKind;
  Blocks blocks;
  auto add = [&](std::uint64_t address, const LiveMemory::Block& block) {
    if (block.process != process_->pid() || !address || !block.size) return;
    Kind kind = block.kind == MemoryKind::host      ? Kind::pinned
                : block.kind == MemoryKind::managed ? Kind::managed
                                                    : Kind::device;
    blocks[address] = {{address}, block.size, kind, 0};
  };
  std::lock_guard lock(mutex_);
  memory_.live().each([&](const LiveMemory::Block& block) {
    if (block.kind != MemoryKind::vmm) add(block.address, block);
  });
  memory_.live().each_mapping(process_->pid(), add);
  return blocks;
}

Result<ProcessTaper::Next> ProcessTaper::begin_capture(StoppedThread& thread) {
  TRY(still(thread));
  folder_ = TRY(around_.make_folder(captured_.folder));
  describe_device(thread, manifest_);
  manifest_.contents = wanted_.contents;
  Blocks all = blocks();
  for (const auto& [address, block] : all) manifest_.blocks.push_back(block);
  captured_.bytes = bytes_in(all);
  if (wanted_.contents) {
    if (wanted_.most_bytes && captured_.bytes > wanted_.most_bytes)
      return Error{fmt::format("its memory of {} is more than --max-memory allows",
                               human_bytes(captured_.bytes)),
                   {}};
    snapshots_ = std::make_unique<Snapshots>(*folder_, *process_);
    manifest_.before = TRY(snapshots_->take(thread, all));
    TRY(take_variables(thread));
  }
  {
    std::lock_guard lock(mutex_);
    keeps_ = true;
    losses_before_ = losses_;
    begun_at_ = history_.launches(next_.tid);
    manifest_.iteration = {next_.number, thread.pid(), thread.tid(), now_, 0};
  }
  process_->keep(abi::CI_KEEPS_ALL);
  stage_ = Stage::capturing;
  steps_ = 0;
  std::uint64_t least = next_.at_wait ? next_.least_launches() : next_.launches;
  return Next{least, next_.tid ? thread.inner_tid() : 0, next_.at_wait};
}

// It may be somewhat longer than those before it.
Result<ProcessTaper::Next> ProcessTaper::go_to_end(StoppedThread& thread) {
  {
    std::lock_guard lock(mutex_);
    auto next = history_.next_iteration();
    std::uint64_t launched = history_.launches(next_.tid) - begun_at_;
    if (next && next->until && launched < 2 * next_.launches + FIRST_STOP)
      return Next{next->until, next_.tid ? thread.inner_tid() : 0, next_.at_wait};
  }
  TRY(end_capture(thread));
  stage_ = Stage::over;
  process_->keep(abi::CI_KEEPS_NOTHING);
  return Next{};
}

Result<> ProcessTaper::end_capture(StoppedThread& thread) {
  TRY(still(thread));
  std::vector<KeptCall> calls;
  Blocks all = blocks();
  {
    std::lock_guard lock(mutex_);
    watches_ = keeps_ = false;
    calls.swap(kept_);
    manifest_.iteration.end_ns = now_;
    if (losses_ != losses_before_) return Error{"records were lost meanwhile", {}};
  }
  if (std::uint64_t lost = process_->lost())
    return Error{fmt::format("{} of its calls were given more than there was room for", lost), {}};
  if (snapshots_) manifest_.after = TRY(snapshots_->take_changes(thread, all));
  TapeWriter writer(*folder_, manifest_, *process_, handles_, thread, wanted_.contents);
  TRY(writer.write(std::move(calls)));
  if (snapshots_) TRY(add_variables(thread, writer.modules()));
  captured_.kernels = manifest_.kernels.size();
  captured_.iteration = manifest_.iteration.number;
  TRY(folder_->finish(manifest_));
  captured_.operations = folder_->operations();
  captured_.done = true;
  return ok();
}

// Variables lie in no block of memory that the program has allocated.
Result<> ProcessTaper::take_variables(StoppedThread& thread) {
  std::vector<NamedVariable> all;
  {
    std::lock_guard lock(mutex_);
    all = handles_.variables();
  }
  for (const NamedVariable& variable : all)
    variables_[variable.address] =
        TRY(snapshots_->read(thread, variable.address, variable.size, bundle::BlockKind::device));
  return ok();
}

Result<> ProcessTaper::add_variables(StoppedThread& thread,
                                     const std::vector<PlacedModule>& modules) {
  for (const PlacedModule& placed : modules) {
    std::vector<NamedVariable> of_module;
    {
      std::lock_guard lock(mutex_);
      of_module = handles_.variables(placed.owner);
    }
    for (const NamedVariable& known : of_module) {
      bundle::Variable variable{known.name, {known.address}, known.size, {}, {}};
      std::string now =
          TRY(snapshots_->read(thread, known.address, known.size, bundle::BlockKind::device));
      auto before = variables_.find(known.address);
      if (before != variables_.end()) variable.before = TRY(folder_->add_data(before->second));
      if (before == variables_.end() || before->second != now)
        variable.after = TRY(folder_->add_data(now));
      manifest_.modules[placed.module].variables.push_back(std::move(variable));
    }
  }
  return ok();
}

void ProcessTaper::describe_device(StoppedThread& thread, bundle::Manifest& manifest) {
  bundle::Device device = manifest.devices.empty() ? bundle::Device() : manifest.devices.front();
  auto reply = thread.order(abi::CI_DEVICE);
  abi::ci_device about{};
  if (reply && !reply->result) {
    std::memcpy(&about, process_->window().data(), sizeof(about));
    device.name.assign(about.name, strnlen(about.name, sizeof(about.name)));
    for (__u8 byte : about.uuid) device.uuid += fmt::format("{:02x}", byte);
    device.major = about.major;
    device.minor = about.minor;
    device.memory = about.memory;
    for (std::uint32_t i = 0; i < CI_LIMITS - 1; i++)
      if (about.limits[i]) manifest.limits.push_back({i, about.limits[i]});
  }
  manifest.devices = {std::move(device)};
}

}  // namespace cudabpf::taping
