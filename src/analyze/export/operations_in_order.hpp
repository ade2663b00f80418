// Holds what GPUs did until it can be shown in the order in which it began: its lines come in
// bunches, those of one queue after those of another.
#pragma once

#include <cstdint>
#include <map>

#include "analyze/derived/issuing_calls.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::analyze {

class OperationsInOrder {
 public:
  // Keeps it, and gives back the earliest, if it keeps too many.
  template <typename Give>
  void add(const Line& work, Give&& give) {
    if (operations_.size() == MAX) give_first(give);
    Held held{work, work.issuer ? *work.issuer : IssuingCall{}};
    held.line.text = held.line.args = {};
    operations_.emplace(work.ts, held);
  }
  template <typename Give>
  void give_all(Give&& give) {
    while (!operations_.empty()) give_first(give);
  }

 private:
  static constexpr std::size_t MAX = 1 << 14;
  struct Held {
    Line line;
    IssuingCall issuer;
  };

  template <typename Give>
  void give_first(Give&& give) {
    auto first = operations_.extract(operations_.begin());
    auto& [work, issuer] = first.mapped();
    if (work.issuer) work.issuer = &issuer;
    give(work);
  }

  std::multimap<std::uint64_t, Held>
      operations_;  // by ts; those of one in the order of their lines
};

}  // namespace cudabpf::analyze
