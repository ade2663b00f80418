#include "collect/inside/inside_source.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "collect/inside/process_records.hpp"
#include "collect/ioctl_plan.hpp"
#include "collect/library_functions.hpp"
#include "collect/machine.hpp"
#include "util/console/log.hpp"
#include "util/console/terminal.hpp"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"
#include "util/system/file_limit.hpp"
#include "util/system/pidfd.hpp"
#include "util/system/privileges.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

// Which losses the library's counters stand for.
constexpr std::pair<abi::cb_counter, Loss> LOSSES[] = {
    {abi::CB_DROPPED_ENTRY, Loss::ring_entry},     {abi::CB_DROPPED_RETURN, Loss::ring_return},
    {abi::CB_DROPPED_PROCESS, Loss::ring_process}, {abi::CB_DROPPED_NAME, Loss::ring_name},
    {abi::CB_DROPPED_DRIVER, Loss::ring_driver},   {abi::CB_DROPPED_GPU, Loss::ring_gpu},
    {abi::CB_DROPPED_HOLDER, Loss::ring_holder},   {abi::CB_DROPPED_RANGE, Loss::ring_range},
    {abi::CB_DROPPED_STACK, Loss::ring_stack},
};

constexpr std::uint64_t MAX_RING = 256 << 20;  // a process has 1,024

// Records nothing in these rings from now on.
void silence(const std::vector<std::shared_ptr<SharedRings>>& traced) {
  // Most calls that are under way return within this time.
  constexpr auto UNDER_WAY = std::chrono::milliseconds(5);
  for (const auto& shared : traced) shared->record(abi::CI_RETURNS);
  std::this_thread::sleep_for(UNDER_WAY);
  for (const auto& shared : traced) shared->record(abi::CI_NOTHING);
  // Calls that are writing take less than a microsecond, unless their thread has to wait.
  constexpr auto PATIENCE = std::chrono::milliseconds(100), STEP = std::chrono::milliseconds(1);
  auto give_up = std::chrono::steady_clock::now() + PATIENCE;
  for (const auto& shared : traced)
    while (!shared->is_at_rest() && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(STEP);
}

std::uint32_t times_wanted(GpuTiming timing) {
  switch (timing) {
    case GpuTiming::nodes:
      return abi::CB_GPU_NODES;
    case GpuTiming::graphs:
      return abi::CB_GPU_GRAPHS;
    default:
      return 0;
  }
}

// In the order of the rows; a library of which nothing is recorded has an empty name. In place of a
// USDT probe's single byte no jump has room.
abi::ci_libraries other_libraries(const SourceOptions& options) {
  static_assert(std::size(APIS) <= CI_LIBRARIES);
  abi::ci_libraries libraries{};
  for (std::size_t i = 1; (options.calls || options.python) && i < std::size(APIS); i++)
    if (options.filter.selects_some_of(APIS[i].id) && !APIS[i].has_probes())
      APIS[i].file.copy(libraries.names[i], CI_LIBRARY_NAME - 1);
  return libraries;
}

abi::ci_stack stacks_wanted(const SourceOptions& options) {
  if (!options.python) return abi::CI_STACK_NONE;
  return options.calls ? abi::CI_STACK_TOO : abi::CI_STACK_ALONE;
}

}  // namespace

InsideSource::InsideSource(SourceOptions options, Place place, elf::Reader reader)
    : options_(std::move(options)),
      place_(std::move(place)),
      other_libraries_(other_libraries(options_)),
      reader_(std::move(reader)),
      libraries_(numbers_, options_.filter, options_.taping != nullptr, stacks_wanted(options_)),
      clock_(RecordClock::best()),
      rings_(options_.processes, clock_) {}

InsideSource::~InsideSource() = default;

Result<std::unique_ptr<Source>> InsideSource::open(SourceOptions options, Place place) {
  for (const std::string& path : options.libraries)
    if (!open_named(path)) return no_such_library(path);
  // Libraries come later, but the user's mistakes are reported now.
  bool any = std::ranges::any_of(
      APIS, [&](const Api& api) { return options.filter.selects_some_of(api.id); });
  if (options.calls && !any) return nothing_selected(options.filter);
  options.filter.tally = false;
  if (!options.ring_size) options.ring_size = CI_RING_SIZE;
  if (options.ring_size < CI_LEAST_RING || options.ring_size > MAX_RING)
    return Error{fmt::format("--ring-size {}: the buffer of a thread that is recorded from inside "
                             "is not of this size",
                             human_bytes(options.ring_size)),
                 "give it as 64K, 4M or up to 256M", exit_code::USAGE};
  auto reader = TRY(elf::Reader::start());
  std::unique_ptr<InsideSource> source(
      new InsideSource(std::move(options), std::move(place), std::move(reader)));
  // Where all may come is no place of the caller's: it takes the rights that this process has now.
  if (source->place_.whom == Place::For::all)
    source->listener_.emplace(TRY(Listener::open_for_all(source->place_.listener)));
  return std::unique_ptr<Source>(std::move(source));
}

void InsideSource::describe(Session& session) const {
  if (options_.gpu != GpuTiming::none)
    session.gpu_timing = options_.gpu == GpuTiming::graphs ? "graphs" : "nodes";
  session.gpu_window_ns = options_.gpu_window_ns;
  session.gpu_period_ns = options_.gpu_period_ns;
  if (!options_.calls) return;
  session.source = "inside";
  session.unseen = {
      "calls before cuInit had loaded the library, and that cuInit",
      "processes that neither call cuInit nor name a range",
      "calls of a library that is loaded after cuInit, until one of its first calls of "
      "the driver",
      "functions that could not be patched: `left_out` of a library"};
  session.follow = options_.follow_children;
  session.ring_size = options_.ring_size;
  session.driver_traced = options_.driver;
  if (!options_.driver) return;
  session.driver_way = "imports";
  session.unseen.push_back("requests to the driver from libraries other than libcuda");
}

Result<> InsideSource::start(OnRecord on_record) {
  on_record_ = std::move(on_record);
  raise_file_limit();  // each process takes two descriptors
  if (!listener_)
    listener_.emplace(TRY(Listener::open(place_.listener, {geteuid(), 0, place_.user})));
  Host& host = *this;
  bool others = std::ranges::any_of(other_libraries_.names, [](const char* name) { return *name; });
  handshakes_.emplace(std::move(*listener_), reader_, libraries_, options_.libraries, host,
                      Handshakes::Wanted{.calls = options_.calls || options_.python,
                                         .reported = options_.calls,
                                         .python = options_.python,
                                         .others = others,
                                         .gpu = times_wanted(options_.gpu),
                                         .gpu_window = options_.gpu_window_ns,
                                         .gpu_period = options_.gpu_period_ns,
                                         .memory_size = SharedRings::size(options_.ring_size),
                                         .tape_size = TapeMemory::SIZE});
  return ok();
}

bool InsideSource::knows_the_listener(pid_t pid) const {
  // Beside eBPF, this process has put its rights aside, and processes of the same user hide from
  // it.
  privileges::Raised looking({CAP_SYS_PTRACE});
  const std::string variable = std::string(CI_LISTENER "=") + place_.listener;
  for (const std::string& one : Procfs().environment(pid))
    if (one == variable) return true;
  return false;
}

// A program may have written over its environment, and an orphan's parents are gone.
bool InsideSource::belongs(pid_t pid) const {
  auto command = static_cast<pid_t>(selected_);
  if (place_.whom != Place::For::command || pid == command || knows_the_listener(pid)) return true;
  auto ancestors = Procfs().ancestors(pid);
  return std::find(ancestors.begin(), ancestors.end(), command) != ancestors.end();
}

std::size_t InsideSource::count_awaited() const {
  std::size_t count = 0;
  for (pid_t pid : Procfs().pids())
    count += pid != getpid() && !known_.contains(static_cast<std::uint32_t>(pid)) &&
             knows_the_listener(pid);
  return count;
}

std::size_t InsideSource::awaited() const {
  if (!options_.follow_children || place_.whom == Place::For::all) return 0;
  // While a process execs, it has no environment for a moment.
  constexpr int LOOKS = 3;
  constexpr auto BETWEEN = std::chrono::milliseconds(20);
  for (int look = 0; look < LOOKS; look++) {
    if (look) std::this_thread::sleep_for(BETWEEN);
    if (std::size_t count = count_awaited()) return count;
  }
  return 0;
}

abi::ci_driver InsideSource::driver_plan() const {
  abi::ci_driver plan{};
  if (!options_.driver) return plan;
  plan.recorded = 1;
  auto devices = place_.devices.for_kernel_side();
  std::copy_n(devices.begin(), std::min<std::size_t>(devices.size(), CB_DRIVER_DEVICES),
              plan.devices);
  auto version = DriverVersion::parse(nvidia_driver().version);
  for (std::size_t i = 0; i < CB_IOCTL_PLANS; i++) {
    plan.escape_plans[i] = escape_plan(static_cast<std::uint8_t>(i), version);
    plan.uvm_plans[i] = uvm_plan(static_cast<std::uint8_t>(i), version);
  }
  return plan;
}

Host::Kin InsideSource::kin(pid_t pid) {
  came_ |= static_cast<std::uint32_t>(pid) == selected_;
  if (has_ended(pid)) return Kin::gone;
  bool ours = options_.follow_children ? belongs(pid) : pid == static_cast<pid_t>(selected_);
  return ours ? Kin::ours : Kin::stranger;
}

Host::Admission InsideSource::admit(const Arrival& arrival) {
  auto pid = static_cast<std::uint32_t>(arrival.pid);
  auto known = known_.find(pid);
  if (arrival.hello.has_memory) {
    bool traced = known != known_.end() && !known->second.expired();
    return traced ? with_tape(arrival) : Admission{};
  }
  std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
  if (place_.whom == Place::For::all && known_.size() >= MAX_OF_ALL)
    return {.failed = "cudabpf records GPU times of too many processes already"};
  Newcomer newcomer;
  newcomer.pidfd = open_pidfd(arrival.pid);
  if (has_ended(arrival.pid, newcomer.pidfd)) return {};
  auto made = SharedRings::make(driver_plan(), other_libraries_, clock_, options_.ring_size);
  if (!made) return {.failed = made.error().message};
  // Its cuInit is under way or has yet to come, so everything that the program does from here on is
  // seen, as after an exec.
  bool forked = arrival.hello.reason == abi::CI_FORKED;
  newcomer.record =
      process_record(forked ? abi::CB_FORK : abi::CB_EXEC, arrival.pid, now_ns(CLOCK_MONOTONIC));
  // In the /proc of another pid namespace, this is another process.
  newcomer.inner_pid = Procfs().is_ours() ? newcomer.record.ns_pid : pid;
  if (options_.taping) without_tape_[pid] = newcomer.inner_pid;
  Admission admission = with_tape(arrival);
  if (!admission.failed.empty()) return admission;
  newcomer.shared = std::make_shared<SharedRings>(std::move(*made));
  admission.shared = newcomer.shared->fd();
  known_[pid] = newcomer.shared;
  std::lock_guard lock(comings_and_goings_);
  newcomers_.push_back(std::move(newcomer));
  return admission;
}

// A process gets the memory for a capture when it loads its libcuda, perhaps after it got its
// rings: it may have named a range before.
Host::Admission InsideSource::with_tape(const Arrival& arrival) {
  Admission admission;
  admission.traced = true;
  if (arrival.hello.reason != abi::CI_LOADED || arrival.hello.library) return admission;
  auto without = without_tape_.extract(static_cast<std::uint32_t>(arrival.pid));
  if (!options_.taping || !without) return admission;
  if (auto tape = tape_of(without.key(), without.mapped()))
    admission.tape = *tape;
  else
    return {.failed = tape.error().message};
  return admission;
}

Result<int> InsideSource::tape_of(std::uint32_t pid, std::uint32_t inner_pid) {
  std::erase_if(taped_, [](const auto& one) { return one.second.tape.use_count() == 1; });
  auto tape = TRY(TapeMemory::make(pid));
  std::uint64_t first = options_.taping->begins(tape);
  if (!first) return -1;
  tape->stop_first_at(first);
  taped_[pid] = {tape, inner_pid};
  return tape->fd();
}

void InsideSource::stopped(Connection connection, std::uint32_t inner_tid) {
  auto pid = static_cast<std::uint32_t>(connection.pid);
  auto taped = taped_.find(pid);
  if (!options_.taping || taped == taped_.end()) return;
  auto tid = ThreadIds(pid, taped->second.inner_pid).find(inner_tid, now_ns(CLOCK_MONOTONIC));
  if (tid)
    options_.taping->stopped(
        std::make_unique<StandingThread>(std::move(connection), inner_tid, *tid));
}

// The process that has started this cudabpf reports its own end, once, if cudabpf ends with it.
void InsideSource::depart(pid_t pid) {
  auto known = known_.find(static_cast<std::uint32_t>(pid));
  auto shared = known == known_.end() ? nullptr : known->second.lock();
  if (place_.whom != Place::For::one_process || pid != static_cast<pid_t>(selected_) || departed_ ||
      !shared)
    return;
  silence({shared});
  departed_ = true;
  std::lock_guard lock(comings_and_goings_);
  leaving_.push_back(selected_);
}

std::vector<int> InsideSource::watch_fds() const {
  return handshakes_ ? handshakes_->watch_fds() : std::vector<int>{};
}

News InsideSource::look() {
  News news;
  if (!handshakes_) return news;
  handshakes_->look(news);
  miss_process_that_never_came(news);
  date(news);
  return news;
}

News InsideSource::last_look() {
  News news;
  if (!handshakes_) return news;
  handshakes_->close(news);
  miss_process_that_never_came(news);
  date(news);
  return news;
}

void InsideSource::date(News& news) {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC) - begin_ns_;
  for (Library& library : news.libraries) library.ts = now;
  for (LossEvent& loss : news.losses) {
    loss.since = loss.reason == Loss::late_library ? 0 : now;
    loss.until = now;
  }
  libraries_attached_ += news.libraries.size();
}

// A process that has started its own cudabpf comes at once.
void InsideSource::miss_process_that_never_came(News& news) {
  constexpr std::uint64_t CONNECTS_WITHIN_NS = 5'000'000'000;
  if (place_.whom != Place::For::one_process || came_ || missed_) return;
  auto pid = static_cast<pid_t>(selected_);
  if (now_ns(CLOCK_MONOTONIC) - begin_ns_ < CONNECTS_WITHIN_NS && !has_ended(pid)) return;
  missed_ = true;
  handshakes_->miss(pid, "it did not connect to cudabpf; a seccomp filter may refuse it connect",
                    news);
}

void InsideSource::stop() {
  std::vector<std::shared_ptr<SharedRings>> traced;
  for (auto& [pid, weak] : known_)
    if (auto shared = weak.lock()) traced.push_back(std::move(shared));
  silence(traced);
}

Source::Polled InsideSource::poll() {
  std::vector<Newcomer> newcomers;
  std::vector<std::uint32_t> leaving;
  {
    std::lock_guard lock(comings_and_goings_);
    newcomers.swap(newcomers_);
    leaving.swap(leaving_);
  }
  for (Newcomer& newcomer : newcomers) rings_.add(std::move(newcomer));
  for (std::uint32_t pid : leaving) rings_.leave(pid);
  return rings_.read(on_record_);
}

DriverDevice InsideSource::device(std::uint32_t number) const {
  return {place_.devices.node(number), place_.devices.name(number)};
}

bool InsideSource::is_alive(std::uint32_t pid) const {
  return !(departed_ && pid == selected_) && !has_ended(static_cast<pid_t>(pid));
}

Source::Losses InsideSource::losses() const {
  Losses losses{};
  InsideCounts counts = rings_.counts();
  for (auto [counter, loss] : LOSSES)
    losses[static_cast<std::size_t>(loss)] = counts.dropped[counter];
  losses[static_cast<std::size_t>(Loss::unread)] = counts.unread;
  losses[static_cast<std::size_t>(Loss::thread_unknown)] = rings_.threads_not_looked_up();
  return losses;
}

Accounts InsideSource::accounts() const {
  InsideCounts counts = rings_.counts();
  Accounts accounts;
  accounts.entered = counts.entered;
  accounts.emitted = counts.emitted;
  accounts.dropped = counts.unread;
  for (auto [counter, loss] : LOSSES) accounts.dropped += counts.dropped[counter];
  return accounts;
}

}  // namespace cudabpf
