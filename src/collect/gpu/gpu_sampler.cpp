#include "collect/gpu/gpu_sampler.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "collect/gpu/gpu_reader.hpp"
#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"

namespace cudabpf {

namespace {

using nvml::Return;

constexpr auto NVML_PATIENCE = std::chrono::seconds(3);
constexpr unsigned MAX_GPUS = 64;
// A read of the energy counter may keep a CPU busy for milliseconds: it is read so rarely that this
// takes a thousandth of a CPU.
constexpr std::uint64_t ENERGY_SHARE = 1000, ENERGY_LATEST_NS = 10'000 * GpuSampler::MS;

// In the machine's own pid namespace, NVML's pids are the usual ones.
bool own_pid_namespace() {
  constexpr ino_t MACHINES = 0xeffffffc;  // PROC_PID_INIT_INO
  struct stat info {};
  return stat("/proc/self/ns/pid", &info) == 0 && info.st_ino != MACHINES;
}

std::string why_no_nvml(Return result) {
  if (result == Return::driver_not_loaded) return "no NVIDIA driver is loaded";
  if (result == Return::no_permission) return "this user may not use NVML";
  return fmt::format("NVML does not start (error {})", static_cast<int>(result));
}

// All GPUs, and when to read which part of them.
class Gpus {
 public:
  explicit Gpus(std::unique_ptr<SwitchReader> switches) : switches_(std::move(switches)) {}
  ~Gpus() {
    readers_.clear();
    if (running_) nvml_.shutdown();
  }

  Sampling open(const GpuSampler::Load& load, std::optional<std::uint64_t> period_ns) {
    Sampling sampling;
    auto functions = load();
    if (!functions) {
      sampling.why_not = functions.error().message;
      return sampling;
    }
    nvml_ = *functions;
    Return result = nvml_.init();
    running_ = result == Return::success;
    if (!running_) {
      sampling.why_not = why_no_nvml(result);
      return sampling;
    }
    open_each(sampling);
    // Each GPU adds to the cost.
    sampling.period_ns = period_ns.value_or(
        std::max<std::uint64_t>(GpuSampler::WINDOW_NS, readers_.size() * 50 * GpuSampler::MS));
    sampling.window_ns = std::max(sampling.period_ns, GpuSampler::WINDOW_NS);
    sampling.slow_ns = slow_ns_ = std::max(sampling.period_ns, GpuSampler::SLOW_NS);
    sampling.own_pids = own_pids_ = own_pid_namespace();
    period_ns_ = sampling.period_ns;
    sampling.switches = switches_ && !readers_.empty();
    return sampling;
  }

  std::uint64_t period_ns() const { return period_ns_; }
  bool follows_switches() const { return switches_ != nullptr; }

  void follow_switches() {
    if (!switches_) return;
    if (auto followed = switches_->follow(own_pids_); !followed) {
      switches_why_not_ = followed.error().message;
      switches_.reset();
    }
  }

  // `last`: nothing is read afterwards.
  News read(std::uint64_t begin_ns, bool last) {
    News news;
    follow_switches();
    std::uint64_t now = now_ns(CLOCK_MONOTONIC);
    GpuReader::What what{.activity = now >= activity_due_,
                         .slow = last || now >= slow_due_,
                         .energy = last || now >= energy_due_};
    std::uint64_t used = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (auto& reader : readers_) {
      if (reader->is_lost()) continue;
      std::uint64_t ts = now_ns(CLOCK_MONOTONIC) - begin_ns;
      GpuSample sample = reader->read(ts, what);
      if (reader->is_lost()) continue;
      add_residents(news, sample, reader->gpu().bus_id, begin_ns);
      news.gpu_samples.push_back(std::move(sample));
    }
    used = now_ns(CLOCK_THREAD_CPUTIME_ID) - used;
    now = now_ns(CLOCK_MONOTONIC);
    report_failed_switches(news, now - begin_ns);
    if (what.activity) activity_due_ = now + GpuSampler::WINDOW_NS;
    if (what.slow) slow_due_ = now + slow_ns_;
    if (what.energy)
      energy_due_ =
          now + std::clamp(used * ENERGY_SHARE, slow_ns_, std::max(slow_ns_, ENERGY_LATEST_NS));
    if (what.slow) report_failures(news, now - begin_ns);
    return news;
  }

 private:
  void open_each(Sampling& sampling) {
    unsigned count = 0;
    Return result = nvml_.count(&count);
    if (result != Return::success || !count) sampling.why_not = "NVML shows no GPU";
    if (count > MAX_GPUS) sampling.why_not = fmt::format("only {} GPUs are sampled", MAX_GPUS);
    for (unsigned i = 0; i < std::min(count, MAX_GPUS); i++) {
      auto reader = GpuReader::open(nvml_, i);
      if (!reader) {
        sampling.why_not = reader.error().message;
        continue;
      }
      sampling.gpus.push_back((*reader)->gpu());
      readers_.push_back(std::move(*reader));
    }
  }

  // Adds to a sample which processes had its GPU, if that is followed. What was recorded before the
  // trace began only shows which process had it then.
  void add_residents(News& news, GpuSample& sample, const std::string& bus_id,
                     std::uint64_t begin_ns) {
    auto taken = switches_ ? switches_->take(bus_id) : std::nullopt;
    if (!taken) return;
    GpuResidents& residents = taken->residents;
    if (taken->missing)
      news.losses.push_back({Loss::gpu_switches, taken->missing,
                             residents.from - std::min(residents.from, begin_ns),
                             residents.to - std::min(residents.to, begin_ns),
                             fmt::format("GPU {}: the driver dropped records", sample.device)});
    if (residents.from < begin_ns || residents.to <= residents.from) return;
    residents.from -= begin_ns;
    residents.to -= begin_ns;
    sample.residents = std::move(residents);
  }

  void report_failed_switches(News& news, std::uint64_t until) {
    if (!switches_why_not_.empty())
      news.losses.push_back({Loss::gpu_switches, std::nullopt, until, until, switches_why_not_});
    switches_why_not_.clear();
  }

  void report_failures(News& news, std::uint64_t until) {
    for (auto& reader : readers_) {
      GpuReader::Failures failures = reader->take_failures();
      if (failures.count)
        news.losses.push_back(
            {Loss::gpu_sample, failures.count, reported_at_, until, failures.last});
    }
    reported_at_ = until;
  }

  nvml::Functions nvml_;
  bool running_ = false, own_pids_ = false;
  std::vector<std::unique_ptr<GpuReader>> readers_;
  std::unique_ptr<SwitchReader> switches_;  // null: they are not wanted, or cannot be read any more
  std::string switches_why_not_;            // if that is still to be reported
  std::uint64_t period_ns_ = 0, slow_ns_ = 0;
  std::uint64_t activity_due_ = 0, slow_due_ = 0, energy_due_ = 0;
  std::uint64_t reported_at_ = 0;
};

}  // namespace

// Shared, because the thread outlives the sampler if NVML hangs.
struct GpuSampler::State {
  const Load load;
  const std::optional<std::uint64_t> period_ns;
  std::unique_ptr<SwitchReader> switches;  // until the thread has taken it

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Sampling> opened;
  std::optional<std::uint64_t> begin_ns;
  OnNews on_news;
  bool stopping = false, ended = false;

  // Waits for a condition, but no longer than this.
  template <typename Condition>
  bool wait(std::chrono::nanoseconds time, Condition condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, condition);
  }
  // Changes something under the lock.
  template <typename Change>
  void set(Change change) {
    std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
  void pass_on(News news) {
    std::lock_guard lock(mutex);
    if (on_news && (!news.gpu_samples.empty() || !news.losses.empty())) on_news(std::move(news));
  }
};

GpuSampler::GpuSampler(Load load, std::optional<std::uint64_t> period_ns,
                       std::unique_ptr<SwitchReader> switches)
    : state_(new State{std::move(load), period_ns, std::move(switches), {}, {}, {}, {}, {}}) {
  thread_ = thread_without_signals([state = state_] { run(state); });
  if (state_->wait(NVML_PATIENCE, [this] { return state_->opened.has_value(); })) {
    sampling_ = *state_->opened;
    return;
  }
  sampling_.why_not = fmt::format("NVML did not answer within {} s", NVML_PATIENCE.count());
  state_->set([this] { state_->stopping = true; });
  thread_.detach();
}

GpuSampler::~GpuSampler() { stop(); }

void GpuSampler::run(const std::shared_ptr<State>& state) {
  ::prctl(PR_SET_NAME, "gpu-sampler");
  privileges::keep_only({});
  {
    Gpus gpus(std::move(state->switches));
    Sampling sampling = gpus.open(state->load, state->period_ns);
    bool any = !sampling.gpus.empty();
    state->set([&] { state->opened = std::move(sampling); });
    constexpr auto FOREVER = std::chrono::hours(24);
    auto stopping = [&] { return state->stopping; };
    auto may_begin = [&] { return state->begin_ns || state->stopping; };
    while (any && !state->wait(FOREVER, may_begin)) continue;
    // Waits until the next sample is due; true: there is to be no other.
    auto wait_for_next = [&] {
      std::uint64_t rest = gpus.period_ns();
      for (; gpus.follows_switches() && rest > SWITCHES_NS; rest -= SWITCHES_NS) {
        if (state->wait(std::chrono::nanoseconds(SWITCHES_NS), stopping)) return true;
        gpus.follow_switches();
      }
      return state->wait(std::chrono::nanoseconds(rest), stopping);
    };
    if (any && state->begin_ns) {
      // Context switches are known a moment later: this completes those of the first sample.
      if (gpus.follows_switches()) state->wait(2 * SwitchReader::SETTLED, stopping);
      do state->pass_on(gpus.read(*state->begin_ns, false));
      while (!wait_for_next());
      state->pass_on(gpus.read(*state->begin_ns, true));
    }
  }
  state->set([&] { state->ended = true; });
}

void GpuSampler::start(std::uint64_t begin_ns, OnNews on_news) {
  state_->set([&] {
    state_->begin_ns = begin_ns;
    state_->on_news = std::move(on_news);
  });
}

void GpuSampler::stop(const std::function<void()>& meanwhile) {
  constexpr auto STEP = std::chrono::milliseconds(20);
  if (!thread_.joinable()) return;
  state_->set([this] { state_->stopping = true; });
  auto give_up = std::chrono::steady_clock::now() + NVML_PATIENCE;
  while (!state_->wait(STEP, [this] { return state_->ended; }) &&
         std::chrono::steady_clock::now() < give_up)
    if (meanwhile) meanwhile();
  if (state_->wait({}, [this] { return state_->ended; })) return thread_.join();
  thread_.detach();
  News hangs;
  std::uint64_t until = now_ns(CLOCK_MONOTONIC) - state_->begin_ns.value_or(0);
  hangs.losses.push_back({Loss::gpu_sample, std::nullopt, 0, until, "NVML does not answer"});
  if (state_->begin_ns) state_->pass_on(std::move(hangs));
  state_->set([this] { state_->on_news = nullptr; });
}

}  // namespace cudabpf
