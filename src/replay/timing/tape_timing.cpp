#include "replay/timing/tape_timing.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "replay/gpu/events.hpp"
#include "replay/launches.hpp"

namespace cudabpf::replay {

namespace {

constexpr unsigned ASIDE = 1;  // a stream that is not ordered with the legacy default stream
constexpr std::size_t MAX_TIMED = 1 << 15;  // launches; each needs two events

// Records an event before each launch and one after it.
class LaunchEvents : public Watch {
 public:
  LaunchEvents(const Driver& driver, const std::vector<std::uint32_t>& launches)
      : driver_(&driver), launches_(&launches) {}
  ~LaunchEvents() override {
    for (const auto& [step, pair] : events_)
      for (Handle event : {pair.first, pair.second})
        if (event) static_cast<void>(driver_->destroy_event.status_of(event));
  }
  LaunchEvents(const LaunchEvents&) = delete;
  LaunchEvents& operator=(const LaunchEvents&) = delete;

  // Made beforehand, so that making them takes no time in between.
  Result<> prepare() {
    for (std::size_t i = 0; i < launches_->size() && events_.size() < MAX_TIMED; i++) {
      if ((*launches_)[i] == NONE) continue;
      auto& [begin, end] = events_[i];
      TRY(driver_->create_event(&begin, WITH_TIME));
      TRY(driver_->create_event(&end, WITH_TIME));
    }
    return ok();
  }

  Result<> before(std::size_t step, Handle stream) override {
    auto pair = events_.find(step);
    return pair == events_.end() ? ok() : driver_->record_event(pair->second.first, stream);
  }
  Result<> after(std::size_t step, Handle stream) override {
    auto pair = events_.find(step);
    return pair == events_.end() ? ok() : driver_->record_event(pair->second.second, stream);
  }

  Result<std::vector<LaunchTime>> times(const Player& player) const {
    std::map<std::uint32_t, LaunchTime> all;
    for (const auto& [step, pair] : events_) {
      if (player.skipped_steps().contains(step)) continue;
      std::uint64_t ns = TRY(ns_between(*driver_, pair.first, pair.second));
      LaunchTime& time = all[(*launches_)[step]];
      time.launch = (*launches_)[step];
      time.least_ns = time.count ? std::min(time.least_ns, ns) : ns;
      time.most_ns = std::max(time.most_ns, ns);
      time.total_ns += ns;
      time.count++;
    }
    std::vector<LaunchTime> list;
    list.reserve(all.size());
    for (const auto& [launch, time] : all) list.push_back(time);
    return list;
  }

 private:
  const Driver* driver_;
  const std::vector<std::uint32_t>* launches_;
  std::map<std::size_t, std::pair<Handle, Handle>> events_;  // by step
};

}  // namespace

Result<> TapeTiming::prepare() {
  TRY(driver_->create_stream(&clock_, ASIDE, 0));
  TRY(driver_->create_event(&begin_, WITH_TIME));
  TRY(driver_->create_event(&end_, WITH_TIME));
  ends_.resize(player_->streams().size());
  for (Handle& event : ends_) TRY(driver_->create_event(&event, WITHOUT_TIME));
  return ok();
}

Result<std::uint64_t> TapeTiming::run_ns() {
  auto streams = player_->streams();
  TRY(driver_->synchronize());
  TRY(driver_->record_event(begin_, clock_));
  for (Handle stream : streams) TRY(driver_->wait_event(stream, begin_, 0));
  TRY(player_->give({}));
  for (std::size_t i = 0; i < streams.size(); i++) {
    TRY(driver_->record_event(ends_[i], streams[i]));
    TRY(driver_->wait_event(clock_, ends_[i], 0));
  }
  TRY(driver_->record_event(end_, clock_));
  TRY(player_->finish());
  return ns_between(*driver_, begin_, end_);
}

Result<std::vector<LaunchTime>> TapeTiming::launches_ns(
    const std::vector<std::uint32_t>& launches) {
  LaunchEvents events(*driver_, launches);
  TRY(events.prepare());
  TRY(player_->play({.watch = &events}));
  return events.times(*player_);
}

}  // namespace cudabpf::replay
