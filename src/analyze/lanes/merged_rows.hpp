// Rows of what happened along the axis of time: each event by itself while there are few. Where
// there are too many, close ones become one item, which says what it stands for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace cudabpf::analyze {

template <typename Item>
void sort_row(std::vector<Item>& row) {
  if (!std::is_sorted(row.begin(), row.end(), Item::comes_before))
    std::stable_sort(row.begin(), row.end(), Item::comes_before);
}

// Keeps the number of items in all rows within bounds. An Item has
//   comes_before(a, b)           the order of a row
//   are_one(a, b, resolution)    whether two may become one, within 2^resolution ns
//   absorb(next)                 takes what another one stands for
//   FINEST, COARSEST             resolutions
//   MERGES_AT_ONCE               whether one that is added may become part of the row's last
template <typename Item>
class MergedRows {
 public:
  using Row = std::vector<Item>;

  // Merging takes time, so it is done for more than `most`, and leaves no more than `room`.
  MergedRows(std::size_t most, std::size_t room) : most_(most), room_(room) {}

  // each_row(f) calls f with every row.
  template <typename EachRow>
  void add(Row& row, Item item, EachRow&& each_row) {
    bool at_once = Item::MERGES_AT_ONCE && resolution_ && !row.empty() &&
                   Item::are_one(row.back(), item, resolution_);
    if (at_once) return row.back().absorb(item);
    row.push_back(std::move(item));
    if (++count_ > most_) merge(each_row);
  }
  void drop_last(Row& row) {
    row.pop_back();
    count_--;
  }
  unsigned resolution() const { return resolution_; }  // 0: all are by themselves

 private:
  template <typename EachRow>
  void merge(EachRow&& each_row) {
    bool coarser = Item::MERGES_AT_ONCE || !resolution_;
    do {
      if (coarser) resolution_ = resolution_ ? resolution_ + 1 : Item::FINEST;
      coarser = true;
      count_ = 0;
      each_row([this](Row& row) { merge_row(row); });
    } while (count_ > room_ && resolution_ < Item::COARSEST);
  }
  void merge_row(Row& row) {
    sort_row(row);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < row.size(); i++) {
      if (kept && Item::are_one(row[kept - 1], row[i], resolution_))
        row[kept - 1].absorb(row[i]);
      else if (kept++ != i)
        row[kept - 1] = std::move(row[i]);
    }
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(kept), row.end());
    count_ += kept;
  }

  std::size_t most_, room_, count_ = 0;
  unsigned resolution_ = 0;
};

}  // namespace cudabpf::analyze
