// Holds what GPUs did until it can be told in the order in which it began: its lines come in
// bunches, those of one queue after those of another.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "analyze/circumstances/issuing_calls.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

class WorksInOrder {
 public:
  // Keeps it, and gives back the earliest, if it keeps too many.
  template <typename Give>
  void add(const Line& work, Give&& give) {
    if (order_.size() == MOST) give_first(give);
    std::size_t at = works_.size();
    if (free_.empty()) {
      works_.emplace_back();
    } else {
      at = free_.back();
      free_.pop_back();
    }
    works_[at] = {work, work.issuer ? *work.issuer : IssuingCall{}};
    works_[at].line.text = works_[at].line.args = {};
    order_.push({work.ts, ++count_, at});
  }
  template <typename Give>
  void give_all(Give&& give) {
    while (!order_.empty()) give_first(give);
  }

 private:
  static constexpr std::size_t MOST = 1 << 14;
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::size_t>;  // ts, its line, in works_

  template <typename Give>
  void give_first(Give&& give) {
    std::size_t at = std::get<2>(order_.top());
    order_.pop();
    free_.push_back(at);
    auto [work, issuer] = works_[at];
    if (work.issuer) work.issuer = &issuer;
    give(work);
  }

  struct Held {
    Line line;
    IssuingCall issuer;
  };
  std::vector<Held> works_;
  std::vector<std::size_t> free_;  // places in it
  std::priority_queue<Key, std::vector<Key>, std::greater<>> order_;
  std::uint64_t count_ = 0;
};

}  // namespace cudabpf::analyze
