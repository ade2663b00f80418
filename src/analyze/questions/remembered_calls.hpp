// Calls that asked the GPU for something, until a trace tells when the GPU did it: a tenth of a
// second later, or more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace cudabpf::analyze {

class RememberedCalls {
 public:
  // Calls are kept whose ids are among the last so many; those before are forgotten.
  static constexpr std::size_t MOST = std::size_t{1} << 20;
  static constexpr std::uint32_t NO_PLACE = std::numeric_limits<std::uint32_t>::max();

  struct Call {
    std::uint64_t id = 0;  // 0: there is none
    std::uint64_t ts = 0;
    // What its work did on the GPU so far, if it launched a graph; `begin` > `end`: nothing.
    std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
    std::uint32_t place = NO_PLACE;  // where it belongs, as who remembers it counts
    bool graph = false;
    bool wanted = true;  // it lies in the part of the trace that is wanted
  };

  // Returns the one that is forgotten for it; its id is 0 if there is none.
  Call add(const Call& call) {
    if (!call.id) return {};
    if (calls_.empty()) calls_.resize(FIRST);
    while (place_of(call.id).id && place_of(call.id).id != call.id && calls_.size() < MOST) grow();
    return std::exchange(place_of(call.id), call);
  }
  // Null: it is not known, or was forgotten. Valid until the next one is added.
  Call* find(std::uint64_t id) {
    if (calls_.empty() || !id) return nullptr;
    Call& call = place_of(id);
    return call.id == id ? &call : nullptr;
  }
  template <typename Each>
  void each(Each&& each) const {
    for (const Call& call : calls_)
      if (call.id) each(call);
  }

 private:
  static constexpr std::size_t FIRST = 1024;

  // Ids are given one after the other, so each has a place of its own, as far as they are kept.
  Call& place_of(std::uint64_t id) { return calls_[id & (calls_.size() - 1)]; }
  // What had places of its own still has.
  void grow() {
    std::vector<Call> old(2 * calls_.size());
    old.swap(calls_);
    for (const Call& call : old)
      if (call.id) place_of(call.id) = call;
  }

  std::vector<Call> calls_;  // as many as a power of two
};

}  // namespace cudabpf::analyze
