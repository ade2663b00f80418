#include "sink/top/top_sink.hpp"

#include "util/system/clock.hpp"

namespace cudabpf {

void TopSink::begin(const Session& session) {
  model_.begin(session);
  begin_ns_ = now_ns(CLOCK_MONOTONIC);
}

void TopSink::flush() {
  if (options_.once) return;
  std::uint64_t now = now_ns(CLOCK_MONOTONIC) - begin_ns_;
  if (now - shown_ns_ >= options_.interval_ns) show(now, nullptr);
}

void TopSink::end(const Totals& totals) { show(now_ns(CLOCK_MONOTONIC) - begin_ns_, &totals); }

void TopSink::show(std::uint64_t now, const Totals* totals) {
  TopInterval interval = model_.interval(now);
  if (totals) interval.books = {totals->accounts, totals->tallied};
  if (!show_(interval, totals != nullptr)) return;
  model_.begin_next(now);
  shown_ns_ = now;
}

}  // namespace cudabpf
