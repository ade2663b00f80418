// Places that are joined to sets, of which each place is in one.
#pragma once

#include <cstddef>
#include <vector>

namespace cudabpf {

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t places = 0) {
    while (parents_.size() < places) add();
  }

  // A set of its own. Returns its place.
  std::size_t add() {
    parents_.push_back(parents_.size());
    return parents_.back();
  }
  void join(std::size_t a, std::size_t b) { parents_[root(b)] = root(a); }
  // The place that stands for the set; the same for all of its places.
  std::size_t root(std::size_t place) {
    while (parents_[place] != place) place = parents_[place] = parents_[parents_[place]];
    return place;
  }

 private:
  std::vector<std::size_t> parents_;
};

}  // namespace cudabpf
