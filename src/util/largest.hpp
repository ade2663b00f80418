// Keeps the largest few of a stream of items.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace cudabpf {

// Larger(a, b): whether a comes before b.
template <typename T, typename Larger>
class Largest {
 public:
  explicit Largest(std::size_t at_most, Larger larger = {})
      : at_most_(at_most), larger_(std::move(larger)) {}

  // Returns the item that found no room: this one or a smaller one that was kept.
  std::optional<T> add(T one) {
    std::optional<T> left;
    if (heap_.size() == at_most_) {
      if (!at_most_ || !larger_(one, heap_.front())) return one;
      std::pop_heap(heap_.begin(), heap_.end(), larger_);
      left = std::move(heap_.back());
      heap_.pop_back();
    }
    heap_.push_back(std::move(one));
    std::push_heap(heap_.begin(), heap_.end(), larger_);
    return left;
  }

  // The smallest item kept; null while there is room for any.
  const T* least() const { return at_most_ && heap_.size() == at_most_ ? &heap_.front() : nullptr; }

  // Largest first. Leaves this empty.
  std::vector<T> take() {
    std::sort(heap_.begin(), heap_.end(), larger_);
    return std::exchange(heap_, {});
  }

 private:
  std::size_t at_most_;
  Larger larger_;
  std::vector<T> heap_;  // the smallest is at the front
};

}  // namespace cudabpf
