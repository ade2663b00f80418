// The most recent calls, by id. Lines of GPU operations come a tenth of a second or more after the
// calls that submitted them, and name these only by id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cudabpf::analyze {

// A Call has an `id`; 0: there is none. Calls with the last Call::MAX ids are kept, which is a
// power of two.
template <typename Call>
class CallsById {
 public:
  explicit CallsById(std::size_t most = Call::MAX) : most_(most) {}

  // Returns the call that is forgotten for it; its id is 0 if there is none.
  Call add(const Call& call) {
    if (!call.id) return {};
    if (calls_.empty()) calls_.resize(std::min(FIRST, most_));
    while (place_of(call.id).id && place_of(call.id).id != call.id && calls_.size() < most_) grow();
    return std::exchange(place_of(call.id), call);
  }
  // Null: it is not known, or was forgotten. Valid until the next one is added.
  Call* find(std::uint64_t id) { return const_cast<Call*>(std::as_const(*this).find(id)); }
  const Call* find(std::uint64_t id) const {
    if (calls_.empty() || !id) return nullptr;
    const Call& call = calls_[index_of(id)];
    return call.id == id ? &call : nullptr;
  }
  template <typename Each>
  void each(Each&& each) const {
    for (const Call& call : calls_)
      if (call.id) each(call);
  }

 private:
  static constexpr std::size_t FIRST = 1024;

  // Ids are given one after the other, so each kept call has a place of its own.
  std::size_t index_of(std::uint64_t id) const { return id & (calls_.size() - 1); }
  Call& place_of(std::uint64_t id) { return calls_[index_of(id)]; }
  // Calls with a place of their own still have one.
  void grow() {
    std::vector<Call> old(2 * calls_.size());
    old.swap(calls_);
    for (const Call& call : old)
      if (call.id) place_of(call.id) = call;
  }

  std::size_t most_;
  std::vector<Call> calls_;  // as many as a power of two
};

}  // namespace cudabpf::analyze
