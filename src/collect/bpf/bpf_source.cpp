#include "collect/bpf/bpf_source.hpp"

#include <bpf/libbpf.h>
#include <linux/capability.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "util/console/log.hpp"
#include "util/system/clock.hpp"
#include "util/system/pidfd.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

namespace {

constexpr std::uint64_t MUCH_OF_RING = 32;  // more than its 32nd part

// Kernel counters and the losses they stand for.
constexpr std::pair<abi::cb_counter, Loss> KERNEL_LOSSES[] = {
    {abi::CB_DROPPED_ENTRY, Loss::ring_entry},     {abi::CB_DROPPED_RETURN, Loss::ring_return},
    {abi::CB_DROPPED_PROCESS, Loss::ring_process}, {abi::CB_DROPPED_NAME, Loss::ring_name},
    {abi::CB_DROPPED_DRIVER, Loss::ring_driver},   {abi::CB_DROPPED_STACK, Loss::ring_stack},
    {abi::CB_DROPPED_HOLDER, Loss::ring_holder},
};

constexpr std::pair<abi::cb_tally_counter, Loss> TALLY_LOSSES[] = {
    {abi::CB_TALLY_DROPPED, Loss::tally_full},
    {abi::CB_TALLY_UNTIMED, Loss::tally_untimed},
};

// The user notices the feature's absence, in the trace or in waiting times.
bool is_missed(const Feature& feature) {
  return feature.state == Feature::State::no && !feature.disabled &&
         feature.name != feature::UPROBE_SESSION &&  // the trace is the same
         !feature::is_of_driver(feature.name);       // one of these is enough
}

}  // namespace

void BpfSource::RingDeleter::operator()(ring_buffer* ring) const { ring_buffer__free(ring); }

Result<std::unique_ptr<Source>> BpfSource::open(SourceOptions options) {
  TRY(check_permissions());
  TRY(check_kernel());
  // Before this process holds anything worth stealing.
  std::optional<elf::Reader> reader;
  if (options.calls) reader.emplace(TRY(elf::Reader::start()));
  auto features =
      TRY(Features::detect(options.disabled_features,
                           {.driver = options.driver, .one_process = !options.only_in.empty()}));
  constexpr std::uint64_t USUAL_RING = 32 << 20;
  if (!options.ring_size) options.ring_size = USUAL_RING;
  std::unique_ptr<BpfSource> source(new BpfSource(std::move(options), std::move(features)));
  TRY(source->attach(std::move(reader)));
  return std::unique_ptr<Source>(std::move(source));
}

Result<> BpfSource::attach(std::optional<elf::Reader> reader) {
  bool static_probes = options_.calls && std::ranges::any_of(APIS, [this](const Api& api) {
                         return api.has_probes() && options_.filter.selects_some_of(api.id);
                       });
  bool tallies = options_.calls && options_.filter.tally;
  probes_ = TRY(ProbeSet::load(
      features_,
      {options_.ring_size, options_.follow_children, options_.driver,
       tallies ? options_.most_tallies : 0, tallies && options_.tally_times, static_probes,
       options_.calls ? options_.python_slower_ns : 0, options_.only_in, options_.give_up}));
  if (options_.calls && options_.python_slower_ns) python_.emplace(*probes_);
  if (tallies) tallies_.emplace(probes_->tallies(), numbers_);
  if (features_.has(feature::PROCESS_EVENTS)) TRY(probes_->attach_process_events());
  if (options_.driver) {
    driver_.emplace(probes_->driver(), features_);
    TRY(driver_->attach());
  }
  for (const Feature& feature : features_.list())
    if (is_missed(feature)) log::hint("without {}: {}", feature.name, feature.why);
  if (!reader) return ok();
  libraries_.emplace(
      std::move(*reader), *probes_, numbers_,
      TracedLibraries::Options{options_.filter, options_.libraries, options_.library_path,
                               features_.has(feature::WATCH_MAPPINGS)});
  callers_.emplace([this](std::uint32_t pid) { return probes_->was_selected(pid); },
                   [this] { return libraries_->read_code(); }, needs());
  return libraries_->attach_known();
}

void BpfSource::describe(Session& session) const {
  session.source = "ebpf";
  session.follow = options_.follow_children;
  session.driver_traced = options_.driver;
  if (driver_) session.driver_way = driver_->way();
  session.ring_size = options_.ring_size;
  session.python_slower_ns = options_.python_slower_ns;
  session.python |= python_.has_value();
  if (libraries_) session.libraries = libraries_->all();
  session.features = features_.list();
}

void BpfSource::begin(std::uint64_t begin_ns) {
  if (libraries_) libraries_->begin(begin_ns);
  if (driver_) driver_->begin(begin_ns);
}

Result<> BpfSource::start(OnRecord on_record) {
  on_record_ = std::move(on_record);
  auto hand_over = [](void* self, void* data, std::size_t size) {
    static_cast<BpfSource*>(self)->hand_over({static_cast<const std::byte*>(data), size});
    return 0;
  };
  privileges::Raised rights({CAP_BPF});
  ring_.reset(ring_buffer__new(bpf_map__fd(probes_->ring()), hand_over, this, nullptr));
  if (!ring_) return errno_error("mapping the ring buffer", "give a smaller --ring-size");
  return ok();
}

void BpfSource::hand_over(std::span<const std::byte> record) {
  if (callers_) record = callers_->translated(record);
  if (python_)
    python_->take(record, on_record_);
  else
    on_record_(record);
}

void BpfSource::select_process(std::uint32_t pid) {
  if (python_) {
    privileges::Raised rights(needs());
    python_->look_at_selected(pid);
  }
  if (callers_) callers_->expect(pid);
  probes_->select_process(pid);
}

std::vector<int> BpfSource::watch_fds() const {
  std::vector<int> fds;
  if (libraries_) fds = libraries_->watch_fds();
  if (python_) fds.push_back(python_->fd());
  if (auto log = driver_ ? driver_->log_fd() : std::nullopt) fds.push_back(*log);
  return fds;
}

Capabilities BpfSource::needs() const {
  Capabilities needed;
  for (const KeptCapability& capability : kept_capabilities(features_, options_.driver))
    needed = needed | Capabilities{capability.number};
  return needed;
}

News BpfSource::look() {
  News news;
  if (libraries_) {
    privileges::Raised rights(needs());
    if (python_) python_->look();
    news = libraries_->look();
  }
  if (driver_) driver_->look(needs(), news);
  return news;
}

News BpfSource::last_look() {
  privileges::Raised rights(needs());
  News news;
  if (libraries_) news = libraries_->finish();
  if (driver_) driver_->read_log(news);
  return news;
}

void BpfSource::stop() {
  probes_->detach();
  if (python_) python_->stop();
  if (driver_) driver_->stop();
}

// What was walked is soon gone, so it is read as often as a ring that is filling.
//
// Reading stops at a record that is still being written, such as that of an interrupted thread; the
// records behind it wait, too.
Source::Polled BpfSource::poll() {
  ring* ring = ring_buffer__ring(ring_.get(), 0);
  if (callers_) callers_->catch_up();
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  if (python_) python_->hand_over(on_record_);
  unsigned long made = ring__producer_pos(ring);
  bool much = python_ || ring__avail_data_size(ring) > options_.ring_size / MUCH_OF_RING;
  ring_buffer__consume(ring_.get());
  if (static_cast<long>(ring__consumer_pos(ring) - made) >= 0) read_until_ = now;
  return {.much = much, .until = read_until_};
}

Tallies BpfSource::take_tallies() {
  if (!tallies_) return {};
  privileges::Raised rights({CAP_BPF});
  return tallies_->take([this](std::uint32_t pid) { return is_alive(pid); });
}

DriverDevice BpfSource::device(std::uint32_t number) const {
  return driver_ ? driver_->device(number) : DriverDevice();
}

bool BpfSource::may_miss_exits() const {
  return !features_.has(feature::PROCESS_EVENTS) || probes_->counter(abi::CB_DROPPED_PROCESS);
}

bool BpfSource::is_alive(std::uint32_t pid) const {
  return !has_ended(static_cast<pid_t>(pid)) &&
         (!features_.has(feature::PROCESS_EVENTS) || probes_->is_traced(pid));
}

Source::Losses BpfSource::losses() const {
  Losses losses{};
  for (auto [counter, loss] : KERNEL_LOSSES)
    losses[static_cast<std::size_t>(loss)] = probes_->counter(counter);
  for (auto [counter, loss] : TALLY_LOSSES)
    if (tallies_) losses[static_cast<std::size_t>(loss)] = probes_->tally_counter(counter);
  // A call whose begin is not kept is not known to be slow.
  if (python_)
    losses[static_cast<std::size_t>(Loss::python_walk)] =
        python_->lost() + probes_->tally_counter(abi::CB_TALLY_UNTIMED);
  if (driver_) losses[static_cast<std::size_t>(Loss::driver_skipped)] = driver_->skipped();
  return losses;
}

Accounts BpfSource::accounts() const {
  Accounts accounts;
  accounts.entered = probes_->counter(abi::CB_ENTERED);
  accounts.emitted = probes_->counter(abi::CB_EMITTED);
  for (auto [counter, loss] : KERNEL_LOSSES) accounts.dropped += probes_->counter(counter);
  if (python_) {  // of a walk other records are made here
    accounts.entered += static_cast<std::uint64_t>(python_->balance());
    accounts.emitted += static_cast<std::uint64_t>(python_->balance());
  }
  return accounts;
}

TallyAccounts BpfSource::tally_accounts() const {
  if (!tallies_) return {};
  return {.begun = probes_->tally_counter(abi::CB_TALLY_BEGUN),
          .ended = tallies_->ended(),
          .under_way = tallies_->under_way(),
          .dropped = probes_->tally_counter(abi::CB_TALLY_DROPPED)};
}

}  // namespace cudabpf
