#include "replay/timing/launch_timing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "util/system/fd.hpp"

namespace cudabpf::replay {

namespace {

constexpr unsigned BESIDE = 1;  // a stream that is not ordered with the legacy default stream
constexpr std::uint64_t BURST_NS = 2'000'000;  // long enough for events
constexpr std::uint32_t MOST_WARM = 100, MOST_COLD = 20, MOST_IN_TURN = 10, LEAST = 2;

// What kernels print, and say when they give up, goes nowhere.
class Silence {
 public:
  Silence() : said_(::dup(STDERR_FILENO)) {
    Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (said_ && nowhere) ::dup2(nowhere.get(), STDERR_FILENO);
  }
  ~Silence() {
    if (said_) ::dup2(said_.get(), STDERR_FILENO);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  Fd said_;
};

}  // namespace

Result<> LaunchTiming::prepare(int device) {
  TRY(driver_->create_stream(&stream_, BESIDE, 0));
  return flush_.prepare(device);
}

Result<std::uint64_t> LaunchTiming::ns_of(Burst& burst) {
  progress_->beat();
  return burst.ns();
}

// The shortest of several: whatever else the machine does makes one look longer, and then there
// would be too few.
Result<std::uint32_t> LaunchTiming::repetitions(const Burst::Work& work) {
  constexpr int TRIES = 3;
  Burst few = TRY(Burst::make(*driver_, stream_, LEAST, work));
  TRY(few.warm_up());
  std::uint64_t one = BURST_NS;
  for (int i = 0; i < TRIES; i++) one = std::clamp<std::uint64_t>(TRY(ns_of(few)) / LEAST, 1, one);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(BURST_NS / one, LEAST, MOST_WARM));
}

Result<> LaunchTiming::time_warm(const Burst::Work& work, std::uint32_t samples,
                                 IsolatedTime& times) {
  Burst burst = TRY(Burst::make(*driver_, stream_, times.launches, work));
  TRY(burst.warm_up());
  for (std::uint32_t i = 0; i < samples; i++)
    times.warm_ns.push_back(TRY(ns_of(burst)) / times.launches);
  return ok();
}

Result<> LaunchTiming::time_after(const Burst::Work& before, const Burst::Work& work,
                                  std::uint32_t count, std::uint32_t samples,
                                  std::vector<std::uint64_t>& ns, const BringBack& bring_back) {
  auto both = [&](Handle stream) {
    Status status = before(stream);
    return status.succeeded() ? work(stream) : status;
  };
  Burst alone = TRY(Burst::make(*driver_, stream_, count, before));
  Burst all = TRY(Burst::make(*driver_, stream_, count, both));
  auto run = [&](Burst& burst) -> Result<std::uint64_t> {
    if (bring_back) TRY(bring_back());
    return ns_of(burst);
  };
  static_cast<void>(TRY(run(alone)));  // to warm up
  static_cast<void>(TRY(run(all)));
  for (std::uint32_t i = 0; i < samples; i++) {  // in turn, since clocks change
    std::uint64_t with = TRY(run(all)), without = TRY(run(alone));
    ns.push_back((with - std::min(with, without)) / count);
  }
  return ok();
}

std::vector<std::size_t> LaunchTiming::launches_before(std::size_t step) const {
  constexpr std::size_t MOST = 8;  // what these left in the cache is most of what a launch reads
  const std::vector<Step>& steps = player_->tape().steps();
  std::vector<std::size_t> before;
  for (std::size_t i = step; i-- > 0 && before.size() < MOST;)
    if (steps[i].launch && steps[i].stream() == steps[step].stream() &&
        !player_->skipped_steps().contains(i))
      before.insert(before.begin(), i);
  return before;
}

// The GPU has more work while the host waits and reads the counter, which takes milliseconds.
Result<std::optional<Energy>> LaunchTiming::energy_of(const Burst::Work& work,
                                                      std::uint32_t window_ms, PowerMeter& meter) {
  constexpr std::uint64_t ROUND_NS = 10'000'000;
  std::uint32_t launches = TRY(repetitions(work));
  Burst now = TRY(Burst::make(*driver_, stream_, launches, work));
  Burst next = TRY(Burst::make(*driver_, stream_, launches, work));
  TRY(now.warm_up());
  std::uint64_t one = std::max<std::uint64_t>(TRY(ns_of(now)), 1);
  auto bursts = static_cast<std::uint32_t>(std::max<std::uint64_t>(ROUND_NS / one, 1));
  Burst* turns[] = {&now, &next};
  auto round = [&]() -> Result<> {
    TRY(turns[0]->start(bursts));
    std::swap(turns[0], turns[1]);
    return turns[0]->wait();
  };
  auto energy = TRY(meter.measure(round, window_ms, *progress_));
  TRY(turns[1]->wait());
  if (energy) energy->rounds *= std::uint64_t{bursts} * launches;
  return energy;
}

Result<IsolatedEnergy> LaunchTiming::energy(std::size_t step, std::uint32_t window_ms,
                                            PowerMeter& meter) {
  Burst::Work work = [this, step](Handle stream) { return player_->launch_on(step, stream); };
  Burst::Work flush = [this](Handle stream) { return flush_.run(stream); };
  Burst::Work both = [&](Handle stream) {
    Status status = flush(stream);
    return status.succeeded() ? work(stream) : status;
  };
  IsolatedEnergy energy;
  energy.warm = TRY(energy_of(work, window_ms, meter));
  if (!energy.warm) return energy;
  if (!emptying_) emptying_ = TRY(energy_of(flush, window_ms, meter));
  energy.emptying = emptying_;
  energy.emptied = TRY(energy_of(both, window_ms, meter));
  return energy;
}

Result<IsolatedTime> LaunchTiming::time(std::size_t step, std::uint32_t samples,
                                        const BringBack& bring_back) {
  Burst::Work work = [this, step](Handle stream) { return player_->launch_on(step, stream); };
  Burst::Work flush = [this](Handle stream) { return flush_.run(stream); };
  Burst::Work lead = [&, before = launches_before(step)](Handle stream) {
    Status status = flush(stream);
    for (std::size_t one : before)
      if (status.succeeded()) status = player_->launch_on(one, stream);
    return status;
  };
  IsolatedTime times;
  times.launches = TRY(repetitions(work));
  TRY(time_warm(work, samples, times));
  std::uint32_t count = std::min(times.launches, MOST_COLD);
  Burst::Work flush_all = [this](Handle stream) { return flush_.run_all(stream); };
  TRY(time_after(flush_all, work, count, samples, times.cold_ns, {}));
  if (!bring_back) return times;
  // A kernel that adds to an index, say, makes others fail that run so often: that is no news.
  Silence silence;
  count = std::min(count, MOST_IN_TURN);
  TRY(time_after(lead, work, count, samples, times.in_turn_ns, bring_back));
  return times;
}

}  // namespace cudabpf::replay
