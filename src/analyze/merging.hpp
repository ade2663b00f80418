// Lists that take any number of items in the order of time: when there are too many, neighbours
// merge in pairs.
#pragma once

#include <cstddef>
#include <vector>

namespace cudabpf::analyze {

// An Item has merge(const Item& next), which adds the one that follows it.
template <typename Item>
void merge_pairs(std::vector<Item>& items) {
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i % 2)
      items[i / 2].merge(items[i]);
    else if (i)
      items[i / 2] = items[i];
  }
  items.resize((items.size() + 1) / 2);
}

// Each item stands for the same number of added ones, except the last, which may stand for fewer.
template <typename Item>
class MergedSeries {
 public:
  // `most`: an even number.
  explicit MergedSeries(std::size_t most) : most_(most) {}

  void add(const Item& item) {
    if (in_last_ < in_each_ && !items_.empty()) {
      items_.back().merge(item);
      in_last_++;
      return;
    }
    if (items_.size() >= most_) {
      merge_pairs(items_);
      in_each_ *= 2;
    }
    items_.push_back(item);
    in_last_ = 1;
  }
  const std::vector<Item>& items() const { return items_; }

 private:
  std::size_t most_;
  std::vector<Item> items_;
  std::size_t in_each_ = 1, in_last_ = 0;
};

}  // namespace cudabpf::analyze
