#include "collect/gpu/residency.hpp"

#include <algorithm>
#include <utility>

namespace cudabpf {

void Residency::add(const ContextSwitch& record) {
  Pending pending{.record = record};
  if (last_seqno_) {
    auto gap = static_cast<std::uint16_t>(record.seqno - *last_seqno_ - 1);
    pending.after_gap = gap != 0;
    missing_ += gap - std::min<std::uint64_t>(gap, counted_);
  }
  counted_ = 0;
  last_seqno_ = record.seqno;
  pending_.push_back(pending);
}

void Residency::dropped(std::uint64_t count) {
  missing_ += count;
  counted_ += count;
  pending_.push_back({.record = {}, .gap = true});
}

void Residency::advance(std::uint64_t to, const std::function<bool(std::uint32_t pid)>& has_ended) {
  while (!pending_.empty()) {
    const Pending& next = pending_.front();
    bool possible = next.gap || next.record.time <= to + LATEST_NS;
    if (possible && !next.gap && next.record.time >= to) break;
    if (possible)
      apply(next);
    else
      state_ = State::unknown;
    pending_.pop_front();
  }
  if (state_ == State::resident && has_ended(pid_)) state_ = State::unknown;
  spend_until(to);
}

void Residency::apply(const Pending& pending) {
  if (pending.gap) {
    state_ = State::unknown;
    return;
  }
  const ContextSwitch& record = pending.record;
  bool starts = record.kind == ContextSwitch::Kind::start && !record.of_instance;
  bool ends = record.kind == ContextSwitch::Kind::end && !record.of_instance;
  bool is_current = state_ == State::resident && record.pid == pid_ && record.context == context_;
  bool fits = !pending.after_gap && record.time >= last_time_ &&
              (starts ? state_ != State::resident : ends && is_current);
  if (!fits) state_ = State::unknown;
  if (record.time < last_time_) return;
  spend_until(record.time);
  last_time_ = record.time;
  state_ = starts ? State::resident : ends && fits ? State::no_process : State::unknown;
  pid_ = record.pid;
  context_ = record.context;
}

void Residency::spend_until(std::uint64_t time) {
  if (time <= at_) return;
  std::uint64_t spent = time - at_;
  if (state_ == State::resident) window_.by_pid[pid_] += spent;
  if (state_ == State::unknown) window_.unknown_ns += spent;
  at_ = time;
}

Residency::Window Residency::take() {
  window_.to = at_;
  return std::exchange(window_, Window{at_, at_, {}, 0});
}

std::uint64_t Residency::take_missing() { return std::exchange(missing_, 0); }

}  // namespace cudabpf
