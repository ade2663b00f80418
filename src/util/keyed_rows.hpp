// Rows that are found by a key, in the order in which they were first asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "util/hash.hpp"

namespace cudabpf {

template <typename Key, typename Row, typename Hash = SeededHash>
class KeyedRows {
 public:
  // The row of this key, at first `fresh`. It stays where it is until another is added.
  Row& of(const Key& key, const Row& fresh = {}) {
    auto [at, is_new] = places_.try_emplace(key, rows_.size());
    if (is_new) rows_.push_back(fresh);
    return rows_[at->second];
  }
  bool contains(const Key& key) const { return places_.contains(key); }
  std::size_t size() const { return places_.size(); }

  std::vector<Row>& rows() { return rows_; }
  // In this order. Leaves this empty.
  template <typename Before>
  std::vector<Row> take(Before before) {
    std::stable_sort(rows_.begin(), rows_.end(), before);
    places_.clear();
    return std::exchange(rows_, {});
  }

 private:
  std::vector<Row> rows_;
  HashMap<Key, std::size_t, Hash> places_;
};

}  // namespace cudabpf
