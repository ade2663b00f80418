// When at least one thread of a process was in a call: stretches that meet are kept as one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace cudabpf::analyze {

class InCalls {
 public:
  // In the order of their ends, as a trace has them: a long call comes after all that it outlasted.
  // One may come late, after as many as LATEST stretches; if later, it is left out.
  void add(std::uint64_t begin, std::uint64_t end) {
    Stretch added{begin, std::max(begin, end)};
    std::size_t last = stretches_.size();  // it meets those from `first` to here
    for (; last && stretches_[last - 1].begin > added.end; last--)
      if (stretches_.size() - last == LATEST) return;
    std::size_t first = last;
    for (; first && stretches_[first - 1].end >= added.begin; first--) {
      added.begin = std::min(added.begin, stretches_[first - 1].begin);
      added.end = std::max(added.end, stretches_[first - 1].end);
    }
    auto place = [&](std::size_t i) { return stretches_.begin() + static_cast<std::ptrdiff_t>(i); };
    if (first == last) {
      stretches_.insert(place(last), added);
    } else {
      stretches_[first] = added;
      stretches_.erase(place(first + 1), place(last));
    }
  }
  // Drops what ended until then, which no later query needs.
  void forget_until(std::uint64_t ts) {
    while (!stretches_.empty() && stretches_.front().end <= ts) stretches_.pop_front();
  }
  // How much of that time at least one thread was in a call.
  std::uint64_t time_in(std::uint64_t begin, std::uint64_t end) const {
    auto at = std::lower_bound(
        stretches_.begin(), stretches_.end(), begin,
        [](const Stretch& stretch, std::uint64_t ts) { return stretch.end <= ts; });
    std::uint64_t time = 0;
    for (; at != stretches_.end() && at->begin < end; ++at)
      time += std::min(at->end, end) - std::max(at->begin, begin);
    return time;
  }

 private:
  static constexpr std::size_t LATEST = 1 << 12;

  struct Stretch {
    std::uint64_t begin = 0, end = 0;
  };
  std::deque<Stretch> stretches_;
};

}  // namespace cudabpf::analyze
