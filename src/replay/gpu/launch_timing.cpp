#include "replay/gpu/launch_timing.hpp"

#include <algorithm>

namespace cudabpf::replay {

namespace {

constexpr unsigned BESIDE = 1;  // a stream that is not ordered with the legacy default stream
constexpr int L2_SIZE = 38;     // a CUdevice_attribute
constexpr std::size_t LEAST_FLUSH = 1 << 20;
constexpr std::uint64_t BURST_NS = 2'000'000;  // long enough for events
constexpr std::uint32_t MOST_WARM = 100, MOST_COLD = 20, LEAST = 2;

}  // namespace

Result<> LaunchTiming::prepare(int device) {
  TRY(driver_->create_stream(&stream_, BESIDE, 0));
  int size = 0;
  TRY(driver_->device_attribute(&size, L2_SIZE, device));
  flushed_size_ = std::max(LEAST_FLUSH, 2 * static_cast<std::size_t>(std::max(size, 0)));
  return driver_->allocate(&flushed_, flushed_size_);
}

Result<std::uint32_t> LaunchTiming::repetitions(const Burst::Work& work) {
  Burst few = TRY(Burst::make(*driver_, stream_, LEAST, work));
  TRY(few.warm_up());
  std::uint64_t one = std::max<std::uint64_t>(TRY(few.ns()) / LEAST, 1);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(BURST_NS / one, LEAST, MOST_WARM));
}

Result<> LaunchTiming::time_warm(const Burst::Work& work, std::uint32_t samples,
                                 IsolatedTime& times) {
  Burst burst = TRY(Burst::make(*driver_, stream_, times.launches, work));
  TRY(burst.warm_up());
  for (std::uint32_t i = 0; i < samples; i++)
    times.warm_ns.push_back(TRY(burst.ns()) / times.launches);
  return ok();
}

Result<> LaunchTiming::time_cold(const Burst::Work& work, std::uint32_t samples,
                                 IsolatedTime& times) {
  std::uint32_t count = std::min(times.launches, MOST_COLD);
  auto flush = [this](Handle stream) {
    return driver_->fill_8_async.status_of(flushed_, 0, flushed_size_, stream);
  };
  auto both = [&](Handle stream) {
    Status status = flush(stream);
    return status.succeeded() ? work(stream) : status;
  };
  Burst flushes = TRY(Burst::make(*driver_, stream_, count, flush));
  Burst all = TRY(Burst::make(*driver_, stream_, count, both));
  TRY(flushes.warm_up());
  TRY(all.warm_up());
  for (std::uint32_t i = 0; i < samples; i++) {  // in turn, since clocks change
    std::uint64_t with = TRY(all.ns()), without = TRY(flushes.ns());
    times.cold_ns.push_back((with - std::min(with, without)) / count);
  }
  return ok();
}

Result<IsolatedTime> LaunchTiming::time(std::size_t step, std::uint32_t samples) {
  Burst::Work work = [this, step](Handle stream) { return player_->launch_on(step, stream); };
  IsolatedTime times;
  times.launches = TRY(repetitions(work));
  TRY(time_warm(work, samples, times));
  TRY(time_cold(work, samples, times));
  TRY(driver_->synchronize());
  return times;
}

}  // namespace cudabpf::replay
