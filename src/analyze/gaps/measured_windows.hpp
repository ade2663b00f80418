// The windows in which a process's GPU times were recorded, where they were not always. Of the time
// between them nothing is known: it is neither busy nor idle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cudabpf::analyze {

class MeasuredWindows {
 public:
  struct Window {
    std::uint64_t begin = 0, end = 0;
  };

  // In the order of time. What only a hostile trace has is left out.
  void add(Window window) {
    bool in_order = all_.empty() || window.begin >= all_.back().end;
    if (in_order && window.end > window.begin && all_.size() < MAX) all_.push_back(window);
  }
  bool any() const { return !all_.empty(); }
  const std::vector<Window>& all() const { return all_; }

  // In which window something was submitted. Nothing: in none, but while one opened or closed.
  // `is_next`: what is behind all that are known yet is of the next one, whose line is to come.
  std::optional<std::size_t> index_of(std::uint64_t submitted, bool is_next) const {
    auto at = first_ending_after(submitted);
    bool inside = at == all_.end() ? is_next : at->begin <= submitted;
    return inside ? std::optional(static_cast<std::size_t>(at - all_.begin())) : std::nullopt;
  }
  // How much of [from, to) lies in windows.
  std::uint64_t time_in(std::uint64_t from, std::uint64_t to) const {
    std::uint64_t time = 0;
    for (auto at = first_ending_after(from); at != all_.end() && at->begin < to; ++at)
      time += std::min(at->end, to) - std::max(at->begin, from);
    return time;
  }

 private:
  static constexpr std::size_t MAX = 1 << 18;

  std::vector<Window>::const_iterator first_ending_after(std::uint64_t ts) const {
    return std::upper_bound(all_.begin(), all_.end(), ts,
                            [](std::uint64_t at, const Window& window) { return at < window.end; });
  }

  std::vector<Window> all_;
};

// The standard error of a share that was measured in windows: by how much it differs from window to
// window.
class ShareOfWindows {
 public:
  void add(std::uint64_t part, std::uint64_t whole) {
    if (!whole) return;
    double share = std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
    count_++;
    sum_ += share;
    squares_ += share * share;
  }
  std::size_t count() const { return count_; }
  // 0 if there are fewer than two windows.
  double error() const {
    if (count_ < 2) return 0;
    auto n = static_cast<double>(count_);
    double variance = (squares_ - sum_ * sum_ / n) / (n - 1);
    return std::sqrt(std::max(0.0, variance) / n);
  }

 private:
  std::size_t count_ = 0;
  double sum_ = 0, squares_ = 0;
};

}  // namespace cudabpf::analyze
