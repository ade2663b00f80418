#include "replay/timing/launch_timing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "replay/microseconds.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::replay {

namespace {

constexpr unsigned BESIDE = 1;  // a stream that is not ordered with the legacy default stream
constexpr std::uint64_t BURST_NS = 2'000'000;  // long enough for events
constexpr std::uint32_t MAX_WARM = 100, MAX_COLD = 20, MAX_IN_TURN = 10, LEAST = 2;

Burst::Work one_after_other(Burst::Work first, Burst::Work second) {
  return [first = std::move(first), second = std::move(second)](Handle stream) {
    Status status = first(stream);
    return status.succeeded() ? second(stream) : status;
  };
}

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
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(BURST_NS / one, LEAST, MAX_WARM));
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
  Burst alone = TRY(Burst::make(*driver_, stream_, count, before));
  Burst all = TRY(Burst::make(*driver_, stream_, count, one_after_other(before, work)));
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

std::vector<std::size_t> LaunchTiming::before(std::size_t step) const {
  constexpr std::size_t MAX = 8;  // what these left in the cache is most of what a launch reads
  const std::vector<Step>& steps = player_->tape().steps();
  std::vector<std::size_t> launches{step}, all;
  for (std::size_t i = step; i-- > 0 && launches.size() <= MAX;)
    if (steps[i].launch && steps[i].stream() == steps[step].stream() &&
        !player_->skipped_steps().contains(i))
      launches.insert(launches.begin(), i);
  for (std::size_t launch : launches) {
    for (std::size_t fill : player_->fills_before(launch)) all.push_back(fill);
    if (launch != step) all.push_back(launch);
  }
  return all;
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

Burst::Work LaunchTiming::work_of(std::vector<std::size_t> steps) const {
  return
      [this, steps = std::move(steps)](Handle stream) { return player_->work_on(steps, stream); };
}

Result<IsolatedEnergy> LaunchTiming::energy(std::size_t step, std::uint32_t window_ms,
                                            PowerMeter& meter) {
  Burst::Work work = one_after_other(work_of(player_->fills_before(step)), work_of({step}));
  Burst::Work flush = [this](Handle stream) { return flush_.run(stream); };
  IsolatedEnergy energy;
  energy.warm = TRY(energy_of(work, window_ms, meter));
  if (!energy.warm) return energy;
  if (!emptying_) emptying_ = TRY(energy_of(flush, window_ms, meter));
  energy.emptying = emptying_;
  energy.emptied = TRY(energy_of(one_after_other(flush, work), window_ms, meter));
  return energy;
}

Result<> LaunchTiming::time_in_turn(std::size_t step, std::uint32_t samples,
                                    const BringBack& bring_back, IsolatedTime& times) {
  // A kernel that adds to an index, say, makes others fail that run so often: that is no news.
  Silence silence;
  Burst::Work flush = [this](Handle stream) { return flush_.run(stream); };
  Burst::Work lead = one_after_other(flush, work_of(before(step))), work = work_of({step});
  std::uint32_t count = std::min(times.launches, MAX_IN_TURN);
  TRY(time_after(lead, work, count, samples, times.in_turn_ns, bring_back));
  // Only a sample's first launch has memory as it is in the program. A later one that finds nothing
  // left to do ends sooner, which shows where one launch is long enough for the clock.
  constexpr double LONG_US = 20, CLEAR_US = 5;
  constexpr std::uint32_t MORE_SAMPLES = 8;
  double mean = median_us(times.in_turn_ns);
  if (mean < LONG_US) return ok();
  std::vector<std::uint64_t> once;
  // What disturbs a sample makes it longer: the shortest says most.
  auto is_longer = [&] {
    double shortest = static_cast<double>(*std::min_element(once.begin(), once.end())) / 1000;
    return shortest > mean + std::max(CLEAR_US, mean / 4);
  };
  TRY(time_after(lead, work, 1, samples, once, bring_back));
  if (!is_longer()) return ok();
  TRY(time_after(lead, work, 1, MORE_SAMPLES, once, bring_back));
  times.does_less_again = is_longer();
  if (times.does_less_again) times.in_turn_ns.assign(once.begin(), once.begin() + samples);
  return ok();
}

Result<IsolatedTime> LaunchTiming::time(std::size_t step, std::uint32_t samples,
                                        const BringBack& bring_back) {
  std::vector<std::size_t> fills = player_->fills_before(step);
  Burst::Work fill = work_of(fills), work = work_of({step});
  IsolatedTime times;
  times.launches = TRY(repetitions(one_after_other(fill, work)));
  TRY(fills.empty() ? time_warm(work, samples, times)
                    : time_after(fill, work, times.launches, samples, times.warm_ns, {}));
  std::uint32_t count = std::min(times.launches, MAX_COLD);
  Burst::Work flush_all = [this](Handle stream) { return flush_.run_all(stream); };
  TRY(time_after(one_after_other(flush_all, fill), work, count, samples, times.cold_ns, {}));
  if (bring_back) TRY(time_in_turn(step, samples, bring_back, times));
  return times;
}

}  // namespace cudabpf::replay
