#include "push/pusher.hpp"

#include <algorithm>

#include "util/console/log.hpp"
#include "util/console/terminal.hpp"
#include "util/saturating.hpp"

namespace cudabpf::push {

Counts Pusher::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void Pusher::run() {
  auto due = Clock::now();
  while (!ends_before(due)) {
    Verdict verdict =
        push(http::Patience::of(std::min(options_.every, LONGEST), thread_.stop_fd()));
    if (thread_.is_stopping() && !verdict.has_arrived()) break;  // it was cut off
    note(verdict);
    report(verdict);
    auto now = Clock::now();
    while (due <= now) due += options_.every;
    due = std::max(due, now + verdict.pause);
  }
  Verdict last = push(http::Patience::of(LONGEST_AT_END));
  if (!last.has_arrived())
    log::warning("the last sums of metrics do not reach {}: {}", options_.url.text(), last.why);
}

bool Pusher::ends_before(Clock::time_point time) const {
  return static_cast<bool>(http::Patience{time}.wait(thread_.stop_fd(), POLLIN));
}

Verdict Pusher::push(const http::Patience& patience) {
  Message message = next_();
  auto answer = client_.post(content_type_, message.body, patience);
  if (!answer) return {Outcome::failed, answer.error().message};
  Verdict verdict = verdict_in(*answer);
  if (verdict.has_arrived()) message.arrived();
  return verdict;
}

void Pusher::note(const Verdict& verdict) {
  std::lock_guard lock(mutex_);
  counts_.pushes[static_cast<std::size_t>(verdict.outcome)]++;
  counts_.rejected = saturating_sum(counts_.rejected, verdict.rejected);
}

// When it begins to fail, and when it works again.
void Pusher::report(const Verdict& verdict) {
  if (!verdict.has_arrived()) {
    if (failed_in_a_row_++ == 0)
      log::warning("metrics do not reach {}: {}; no sum is lost if a later push succeeds",
                   options_.url.text(), verdict.why);
    return;
  }
  if (failed_in_a_row_)
    log::note("metrics reach {} again, after {}", options_.url.text(),
              count_of(failed_in_a_row_, "push that failed", "pushes that failed"));
  failed_in_a_row_ = 0;
  if (verdict.outcome == Outcome::accepted || reported_rejected_) return;
  reported_rejected_ = true;
  log::warning("metrics reach {}, but not all of them: {}", options_.url.text(), verdict.why);
}

}  // namespace cudabpf::push
