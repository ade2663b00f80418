#include "util/system/tick_clock.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "util/system/clock.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_MOMENTS = 256;

std::uint64_t counter() {
#if defined(__x86_64__)
  unsigned processor = 0;
  return __rdtscp(&processor);
#else
  return 0;
#endif
}

double rate_between(TickClock::Moment from, TickClock::Moment to) {
  return static_cast<double>(to.ns - from.ns) / static_cast<double>(to.ticks - from.ticks);
}

std::uint64_t scaled(std::uint64_t ticks, double rate) {
  constexpr double MAX = 0x1p63;  // the ticks may be untrusted
  return static_cast<std::uint64_t>(std::min(static_cast<double>(ticks) * rate, MAX));
}

}  // namespace

// The kernel offers only counters that it has found to tick evenly and alike: this one as its own
// clock or, in a virtual machine, one that is based on it.
bool TickClock::is_reliable() {
#if defined(__x86_64__)
  std::ifstream offered("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  return std::find(std::istream_iterator<std::string>(offered), {}, "tsc") !=
         std::istream_iterator<std::string>();
#else
  return false;
#endif
}

// The clock is read between two reads of the counter. If something else came between them, this is
// repeated.
TickClock::Moment TickClock::now() {
  constexpr int TRIES = 4;
  Moment best;
  std::uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < TRIES; i++) {
    std::uint64_t before = counter(), ns = now_ns(CLOCK_MONOTONIC), took = counter() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, ns};
  }
  return best;
}

void TickClock::add(Moment moment) {
  if (!moments_.empty()) {
    Moment last = moments_.back();
    if (moment.ticks < last.ticks) {
      moments_.clear();  // the counter has restarted, as after a suspend to disk
    } else if (moment.ticks == last.ticks || moment.ns <= last.ns) {
      return;
    } else {
      rate_ = rate_between(last, moment);
    }
  }
  moments_.push_back(moment);
  if (moments_.size() > MAX_MOMENTS) thin_out();
}

// Keeps fewer of the older moments: old times are seldom converted.
void TickClock::thin_out() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moments_.size(); i++)
    if (i % 2 == 0 || i > MAX_MOMENTS / 2) moments_[kept++] = moments_[i];
  moments_.resize(kept);
}

std::uint64_t TickClock::ns(std::uint64_t ticks) const {
  std::size_t count = moments_.size();
  // Nearly all times to convert lie between the last two.
  if (count > 1 && ticks >= moments_[count - 2].ticks) {
    Moment from = moments_[count - 2], last = moments_.back();
    std::uint64_t ns = from.ns + scaled(ticks - from.ticks, rate_);
    return ticks <= last.ticks ? std::min(ns, last.ns) : std::max(ns, last.ns);
  }
  auto later = std::upper_bound(moments_.begin(), moments_.end(), ticks,
                                [](std::uint64_t at, Moment one) { return at < one.ticks; });
  if (later == moments_.end())  // there is one at most
    return count ? moments_[0].ns + scaled(ticks - moments_[0].ticks, rate_) : 0;
  if (later == moments_.begin()) {
    double rate = count > 1 ? rate_between(moments_[0], moments_[1]) : rate_;
    return later->ns - std::min(later->ns, scaled(later->ticks - ticks, rate));
  }
  Moment from = *std::prev(later);
  return std::min(from.ns + scaled(ticks - from.ticks, rate_between(from, *later)), later->ns);
}

}  // namespace cudabpf
