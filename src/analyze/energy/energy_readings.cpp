#include "analyze/energy/energy_readings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

void EnergyReadings::add(std::uint64_t ts, double joules) {
  if (last_ && ts <= last_->ts) return;  // cudabpf never writes that
  if (last_ && joules < last_->joules && falls_.size() < MAX_FALLS) falls_.push_back(ts);
  last_ = {ts, joules};
  if (seen_++ % every_) return;
  readings_.push_back(*last_);
  if (readings_.size() == MAX) thin_out();
}

void EnergyReadings::thin_out() {
  for (std::size_t i = 0; i < readings_.size() / 2; i++) readings_[i] = readings_[2 * i];
  readings_.resize(readings_.size() / 2);
  every_ *= 2;
}

EnergyUsed EnergyReadings::between(std::uint64_t from, std::uint64_t to) const {
  constexpr double MAX_WATTS = 1e5;
  EnergyUsed used;
  auto refused = [&](std::string why) {
    used.why_not = std::move(why);
    return used;
  };
  auto earlier = [](const Reading& reading, std::uint64_t ts) { return reading.ts < ts; };
  auto first = std::lower_bound(readings_.begin(), readings_.end(), from, earlier);
  if (first == readings_.end() || first->ts > to)
    return refused("the counter was not read in that time");
  auto next = std::upper_bound(first, readings_.end(), to,
                               [](std::uint64_t ts, const Reading& r) { return ts < r.ts; });
  Reading last = *std::prev(next);
  if (last_->ts <= to) last = *last_;
  used.from = first->ts;
  used.to = last.ts;
  if (used.to == used.from) return refused("the counter was read only once in that time");
  if (used.seconds() < SHORTEST_SECONDS)
    return refused(
        fmt::format("the energy counter's readings in it span {}, and at least 1 s is needed",
                    human_time(used.to - used.from)));
  auto fall = std::upper_bound(falls_.begin(), falls_.end(), used.from);
  if (falls_.size() == MAX_FALLS || (fall != falls_.end() && *fall <= used.to))
    return refused("the counter went back in it: the GPU was reset");
  used.joules = last.joules - first->joules;
  used.error = 2 * STEP_SECONDS * used.watts();
  if (used.watts() > MAX_WATTS) return refused("the counter rose faster than any GPU uses energy");
  return used;
}

void IdlePower::add(const GpuSample& sample) {
  if (!sample.sm_active) return;
  if (*sample.sm_active > 0) {
    current_.reset();
    settled_ = sample.ts + SECOND;
    return;
  }
  if (!sample.power_w || sample.ts < settled_ || (current_ && sample.ts < current_->from)) return;
  double watts = *sample.power_w;
  // A sample's power is that of its moment, or of the time before it: the first begins nothing.
  if (!current_) current_ = {sample.ts, 0, 0, watts, watts};
  if (sample.ts > current_->from) {
    current_->samples++;
    current_->sum += watts;
  }
  current_->least = std::min(current_->least, watts);
  current_->most = std::max(current_->most, watts);
  if (!is_steady()) current_ = {sample.ts, 0, 0, watts, watts};
  if (sample.ts - current_->from < SECOND) return;
  double mean = current_->sum / static_cast<double>(current_->samples);
  if (current_->samples >= FEWEST && (!least_ || mean < least_->watts))
    least_ = {mean, current_->from, sample.ts};
  current_ = {sample.ts, 0, 0, watts, watts};
}

bool IdlePower::is_steady() const {
  return current_->most - current_->least <= std::max(STEADY_WATTS, STEADY_SHARE * current_->most);
}

void SoleProcess::add(const GpuSample& sample) {
  if (!sample.processes) return;
  asked_++;
  if (sample.processes->empty()) return;
  if (pids_.empty()) first_ = sample.ts;
  last_ = sample.ts;
  for (const GpuProcess& process : *sample.processes)
    if (pids_.size() < MAX && std::find(pids_.begin(), pids_.end(), process.pid) == pids_.end())
      pids_.push_back(process.pid);
}

std::optional<std::uint32_t> SoleProcess::pid() const {
  return pids_.size() == 1 ? std::optional(pids_.front()) : std::nullopt;
}

std::string SoleProcess::why_not() const {
  if (!asked_) return "the trace does not say which processes had the GPU";
  if (pids_.empty()) return "NVML named no process; in a container it may not see any";
  if (pids_.size() == 1) return {};
  std::string pids;
  for (std::uint32_t pid : pids_) pids += fmt::format("{}{}", pids.empty() ? "" : ", ", pid);
  return fmt::format("several processes had the GPU, and nothing separates their shares: {}{}",
                     pids, pids_.size() == MAX ? ", …" : "");
}

}  // namespace cudabpf::analyze
