// Idle times by the program's own range, or line of its Python, in which the host was late: that of
// the call that ended them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/shown_ranges.hpp"
#include "analyze/gaps/idle_cause.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

// What the answer about idle times lists: the longest, or the ranges or lines with most of them.
enum class GapsBy : std::uint8_t { gap, range, line };

class IdleByRange {
 public:
  struct Figures {
    std::string name;  // "request 0 / decode"
    std::uint64_t gaps = 0, time = 0, longest = 0;
    IdleTimes by_cause;  // nothing: not measured

    void add(const Figures& other);
  };

  // `process`: its number.
  void add(std::uint64_t process, const RangePlace* place, std::uint64_t time,
           const IdleTimes& by_cause = {});
  // The wanted processes' ranges, the longest time first.
  std::vector<Figures> rows(const Names& names,
                            const std::function<bool(std::uint64_t)>& is_wanted) const;

 private:
  // At most this many are kept apart; later ones are counted as one.
  static constexpr std::size_t MAX_KEPT = 1 << 14;

  struct Key {
    std::uint64_t process = 0;
    const RangePlace* place = nullptr;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return hash_of(key.process, key.place ? key.place->number + 1 : 0);
    }
  };

  HashMap<Key, Figures, Hash> kept_;
  Figures others_;
};

Json causes_json(const IdleTimes& times);
// "range" or "line".
std::string word_of(GapsBy by);
Json idle_by_range_json(const std::vector<IdleByRange::Figures>& rows, GapsBy by);
// `title`: "idle by {}".
void add_idle_by_range(Page& page, std::string_view title,
                       const std::vector<IdleByRange::Figures>& rows, std::size_t at_most,
                       GapsBy by);

}  // namespace cudabpf::analyze
