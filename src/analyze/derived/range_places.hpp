// Where a program is by its own account: the range in which it is, and those around that one. The
// same names are the same place, in whatever trace, process and thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct RangePlace {
  const RangePlace* around = nullptr;  // null: it is in no other
  Name name, domain;                   // no domain: the default one
  std::size_t number = 0;              // from 0
};

// "generate / decode": with the names around it.
std::string path_text(const RangePlace& place, const Names& names);

class RangePlaces {
 public:
  // Notes what ranges there are, and fills in where a call was made, or which one a line is about.
  void follow(Line& line);

  // In the order in which they were seen first: what is around one comes before it.
  const std::deque<RangePlace>& all() const { return all_; }
  std::uint64_t left_out() const { return left_out_; }  // names for which there was no room

 private:
  static constexpr std::size_t MAX_PLACES = 1 << 16, MAX_NUMBERS = 1 << 17;

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

  void name(const Line& line);
  const RangePlace* find(std::uint64_t number) const;

  std::deque<RangePlace> all_;
  std::unordered_map<Key, const RangePlace*, Hash> by_name_;
  HashMap<std::uint64_t, const RangePlace*> by_number_;  // by the trace's own numbers
  std::uint64_t left_out_ = 0;
};

}  // namespace cudabpf::analyze
