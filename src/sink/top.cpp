#include "sink/top.hpp"

#include "util/system/clock.hpp"

namespace cudabpf {

void TopSink::begin(const Session& session) {
  if (session.mode == "run") model_.all_seen();
  begin_ns_ = now_ns(CLOCK_MONOTONIC);
}

void TopSink::flush() {
  if (options_.once) return;
  std::uint64_t now = now_ns(CLOCK_MONOTONIC) - begin_ns_;
  if (now - shown_ns_ >= options_.interval_ns) show(now, false);
}

void TopSink::end(const Totals&) { show(now_ns(CLOCK_MONOTONIC) - begin_ns_, true); }

void TopSink::show(std::uint64_t now, bool last) {
  if (!write_(format_(model_.interval(now)), last)) return;
  model_.begin_next(now);
  shown_ns_ = now;
}

}  // namespace cudabpf
