// Where a program is by its own account: the range in which it is, and those around that one. The
// same names are the same place, in whatever trace, process and thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct RangePlace {
  const RangePlace* around = nullptr;  // null: it is in no other
  Name name, domain;                   // no domain: the default one
  std::size_t number = 0;              // from 0
  std::size_t depth = 0;               // how many are around it
  std::uint64_t names = 0;             // how many names this stands for
  bool is_line = false;                // of Python: see PythonPlaces
};

// "generate / decode": with the names around it.
std::string path_text(const RangePlace& place, const Names& names);
// "step #", of "step 12".
std::string without_digits(std::string_view name);

// Which ranges are wanted, and what became of that.
struct WantedRanges {
  std::string pattern;  // empty: there is no such wish
  bool found = false;
  std::vector<std::string> others;  // patterns that find what the trace has: the first few
};

class RangePlaces {
 public:
  explicit RangePlaces(Names& names) : names_(names) {}

  // Only ranges are wanted whose name fits this shell pattern, or whose path if it has a '/'; and
  // those inside them. Calls in no such range are not.
  void want(std::string_view pattern);
  const WantedRanges& wanted() const { return wanted_; }

  // Notes what ranges there are, and fills in where a call was made, or which one a line is about,
  // and whether that is wanted.
  void follow(Line& line);

 private:
  static constexpr std::size_t MAX_PLACES = 1 << 14, MAX_NUMBERS = 1 << 17;
  // What is deeper is in the range at this depth.
  static constexpr std::size_t MAX_DEPTH = 32;
  // Names in a range that differ only in digits, as those of steps; later ones are one, "step #".
  static constexpr std::size_t MAX_ALIKE = 64;

  struct Key {
    const RangePlace* around = nullptr;
    std::uint32_t name = 0, domain = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return hash_of(key.around ? key.around->number + 1 : 0, key.name, key.domain);
    }
  };

  struct Known {
    const RangePlace* place = nullptr;
    Name name;                 // as it is in the trace
    std::uint64_t around = 0;  // the number of the range around it; 0: none
    bool wanted = true;
  };

  void name(const Line& line);
  RangePlace* place_for(const RangePlace* around, Name name, Name domain);
  const Known* find(std::uint64_t number) const;
  bool fits(const Line& line);
  std::string path_of(const Line& line) const;

  Names& names_;
  WantedRanges wanted_;
  std::deque<RangePlace> all_;
  std::unordered_map<Key, RangePlace*, Hash> by_name_;
  std::unordered_map<Key, std::size_t, Hash> alike_;  // by the name without digits: how many
  HashMap<std::uint64_t, Known> by_number_;           // by the trace's own numbers
};

}  // namespace cudabpf::analyze
