// What GPUs did for a workload in the windows in which that was recorded.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "state/kernel_classes.hpp"

namespace cudabpf {

struct SampledWork {
  struct Kernels {
    std::uint64_t count = 0, time_ns = 0;
  };
  std::array<Kernels, KERNEL_CLASSES> kernels{};
  std::uint64_t window_ns = 0;  // of windows; those of several processes at once count once
};

// How much time on GPUs a workload asked for in each of its latest windows, as a multiple of the
// window's time.
class WindowLoads {
 public:
  static constexpr std::size_t KEPT = 30;

  // Times are ns since the trace began. An operation may come before its window and after it.
  void ran(std::uint64_t began, std::uint64_t time) {
    (began > end_ + BETWEEN ? next_work_ : work_) += time;
  }
  // How much longer the windows have become by this one.
  std::uint64_t add(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t more = end - std::min(end, std::max(begin, end_));
    if (begin >= end_) settle(begin);
    end_ = std::max(end_, end);
    return more;
  }

  // Nothing: there was no window yet whose work is known.
  std::optional<double> mean() const {
    if (!count_) return std::nullopt;
    return sum() / static_cast<double>(known());
  }
  // The mean's standard error. Nothing: of one window it is not known.
  std::optional<double> error() const {
    if (known() < 2) return std::nullopt;
    double squares = 0;
    for (std::size_t i = 0; i < known(); i++)
      squares += (loads_[i] - *mean()) * (loads_[i] - *mean());
    auto n = static_cast<double>(known());
    return std::sqrt(squares / (n - 1) / n);
  }

 private:
  static constexpr std::uint64_t BETWEEN = 500'000'000;  // windows are a second apart

  std::size_t known() const { return std::min(count_, KEPT); }
  double sum() const {
    double sum = 0;
    for (std::size_t i = 0; i < known(); i++) sum += loads_[i];
    return sum;
  }
  void settle(std::uint64_t begin) {
    if (end_ > begin_)
      loads_[count_++ % KEPT] = static_cast<double>(work_) / static_cast<double>(end_ - begin_);
    work_ = next_work_;
    next_work_ = 0;
    begin_ = begin;
  }

  std::uint64_t begin_ = 0, end_ = 0;       // of the latest window
  std::uint64_t work_ = 0, next_work_ = 0;  // ns, of it and of the next one
  std::array<double, KEPT> loads_{};
  std::size_t count_ = 0;  // of all windows before it
};

}  // namespace cudabpf
