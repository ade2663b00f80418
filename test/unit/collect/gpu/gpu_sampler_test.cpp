#include "collect/gpu/gpu_sampler.hpp"

#include <linux/capability.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <condition_variable>
#include <mutex>

#include "collect/gpu/scripted_nvml.hpp"
#include "collect/gpu/scripted_rm.hpp"
#include "support/units.hpp"
#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"

using namespace cudabpf;
using namespace samples;
using nvml::Return;

namespace {

// What a sampler has reported so far.
class Reported {
 public:
  void add(News news) {
    std::lock_guard lock(mutex_);
    news_.add(std::move(news));
    changed_.notify_all();
  }
  void await(std::size_t samples) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(20),
                              [&] { return news_.gpu_samples.size() >= samples; }));
  }
  const News& all() const { return news_; }  // once the sampler has stopped

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  News news_;
};

Result<nvml::Functions> load() { return scripted_nvml(); }

Result<nvml::Functions> load_none() { return Error{"libnvidia-ml.so.1: no such file"}; }

std::string why_not(NvmlScript as) {
  script = std::move(as);
  GpuSampler sampler(load, {});
  CHECK(sampler.sampling().gpus.empty());
  return sampler.sampling().why_not;
}

}  // namespace

TEST_CASE("All GPUs are sampled until the sampler is stopped, and then once more") {
  script = {.gpus = 2};
  std::uint64_t begin = now_ns(CLOCK_MONOTONIC);
  Reported reported;
  {
    GpuSampler sampler(load, 20 * MS);
    const Sampling& sampling = sampler.sampling();
    CHECK(sampling.period_ns == 20 * MS);
    CHECK(sampling.window_ns == 100 * MS);
    CHECK(sampling.slow_ns == 1000 * MS);
    REQUIRE(sampling.gpus.size() == 2);
    CHECK(sampling.gpus[1].device == 1);
    sampler.start(begin, [&](News news) { reported.add(std::move(news)); });
    reported.await(24);
    sampler.stop();
  }
  CHECK(script.running == 0);
  CHECK(script.gpm_samples == 0);
  const std::vector<GpuSample>& samples = reported.all().gpu_samples;
  std::uint64_t last_ts = 0, last_activity = samples.front().ts;
  for (std::size_t i = 0; i < samples.size(); i++) {
    const GpuSample& sample = samples[i];
    CHECK(sample.device == i % 2);
    CHECK(sample.power_w);
    bool first_or_last = i < 2 || i >= samples.size() - 2;
    if (first_or_last) CHECK(sample.energy_j);
    if (first_or_last) CHECK(sample.temperature_c);
    if (sample.device == 1) continue;
    if (i && !first_or_last) CHECK(sample.ts - last_ts >= 20 * MS);
    last_ts = sample.ts;
    if (!sample.window_ns) continue;
    CHECK(*sample.window_ns >= 100 * MS);  // GPM has nothing to say of shorter ones
    CHECK(sample.ts - last_activity == *sample.window_ns);
    last_activity = sample.ts;
  }
  CHECK(last_activity > samples.front().ts);
  CHECK(reported.all().losses.empty());
}

TEST_CASE("Without a period, more GPUs are sampled less often, at the same cost") {
  script = {};
  CHECK(GpuSampler(load, {}).sampling().period_ns == 100 * MS);
  script = {.gpus = 8};
  Sampling sampling = GpuSampler(load, {}).sampling();
  CHECK(sampling.period_ns == 400 * MS);
  CHECK(sampling.window_ns == 400 * MS);
  script = {};
  CHECK(GpuSampler(load, 5000 * MS).sampling().slow_ns == 5000 * MS);
}

TEST_CASE("Where NVML or a GPU is missing nothing is sampled, and the reason is given") {
  script = {};
  GpuSampler none(load_none, {});
  CHECK(none.sampling().why_not == "libnvidia-ml.so.1: no such file");
  none.start(0, [](News) { FAIL("there is nothing to report"); });
  none.stop();
  CHECK(why_not({.gpus = 0}) == "NVML shows no GPU");
  CHECK(why_not({.init = Return::driver_not_loaded}) == "no NVIDIA driver is loaded");
  CHECK(why_not({.init = Return::no_permission}) == "this user may not use NVML");
  CHECK(why_not({.init = static_cast<Return>(999)}) == "NVML does not start (error 999)");
  CHECK(why_not({.results = {{"handle", Return::no_permission}}}) ==
        "NVML does not give GPU 0 (error 4)");
  CHECK(script.running == 0);
}

TEST_CASE("Failed readings are reported as losses, and a lost GPU ends its samples") {
  script = {};
  Reported reported;
  GpuSampler sampler(load, 20 * MS);
  sampler.start(now_ns(CLOCK_MONOTONIC), [&](News news) { reported.add(std::move(news)); });
  reported.await(1);
  script.results["throttle"] = Return::gpu_is_lost;
  sampler.stop();
  REQUIRE(reported.all().losses.size() == 1);
  CHECK(reported.all().losses[0].reason == Loss::gpu_sample);
  CHECK(reported.all().losses[0].count == 1);
  CHECK(reported.all().losses[0].detail == "GPU 0 is lost");
}

TEST_CASE("A sampler that never starts ends all the same") {
  script = {};
  { GpuSampler sampler(load, {}); }
  CHECK(script.running == 0);
}

TEST_CASE(
    "Samples say which processes had the GPU, until the driver refuses to, which is reported "
    "once") {
  if (!privileges::effective().has(CAP_SYS_ADMIN)) SKIP("this takes CAP_SYS_ADMIN");
  script = {};
  auto switches = SwitchReader::open(scripted_rm({}), {"580.159.04", true});
  REQUIRE(switches);
  ScriptedRing ring;
  auto pid = static_cast<std::uint32_t>(getpid());  // one that runs
  ring.record(rm_script.gpu_now(), rm::CONTEXT_STARTS, pid);
  Reported reported;
  {
    GpuSampler sampler(load, 250 * MS, std::move(*switches));
    CHECK(sampler.sampling().switches);
    sampler.start(now_ns(CLOCK_MONOTONIC), [&](News news) { reported.add(std::move(news)); });
    reported.await(2);
    rm_refuses = true;
    reported.await(4);
    sampler.stop();
  }
  CHECK(rm_script.requests[rm::Control::flush] >= 5);  // between samples, too
  const std::vector<GpuSample>& samples = reported.all().gpu_samples;
  CHECK_FALSE(samples.front().residents);  // it began before the trace
  REQUIRE(samples[1].residents);
  const GpuResidents& residents = *samples[1].residents;
  REQUIRE(residents.processes.size() == 1);
  CHECK(residents.processes[0].pid == pid);
  CHECK(residents.processes[0].ns > 200 * MS);
  CHECK(residents.unknown_ns == 0);
  CHECK(residents.to < samples[1].ts);
  CHECK_FALSE(samples.back().residents);
  REQUIRE(reported.all().losses.size() == 1);
  CHECK(reported.all().losses[0].reason == Loss::gpu_switches);
  CHECK_FALSE(reported.all().losses[0].count);
  CHECK(reported.all().losses[0].detail == "asking for what was recorded failed (NV status 0x1b)");
  CHECK(rm_script.clients == 0);
}
