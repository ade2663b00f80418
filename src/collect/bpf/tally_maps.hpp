// What the kernel side has counted of calls that make no records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "collect/function_numbers.hpp"
#include "cudabpf/abi.h"
#include "cudabpf/tally.hpp"

namespace cudabpf {

// One of the kernel's maps by process and something else. A value may be there once for each CPU.
template <typename Value>
class TallyMap {
 public:
  struct Entry {
    abi::cb_tally_key key{};
    Value sum{};
  };
  // `map` has a descriptor that outlives this.
  TallyMap(int map, std::size_t of_each_key);

  std::vector<Entry> read();
  // Takes it from the map with its last figures, which nothing adds to any more.
  bool remove(Entry& entry);

 private:
  int map_;
  std::size_t of_each_key_;
  std::vector<abi::cb_tally_key> keys_;
  std::vector<Value> values_;
  bool failed_ = false;  // and this was reported
};

class TallyMaps {
 public:
  struct Maps {
    int functions = -1;
    int classes = -1, failures = -1;  // -1: they are not wanted
  };
  TallyMaps(const Maps& maps, const FunctionNumbers& numbers);

  using IsAlive = std::function<bool(std::uint32_t pid)>;
  // All tallies. Those of processes that are gone are handed out a last time and removed. Needs
  // CAP_BPF where the kernel restricts maps to processes with it.
  Tallies take(const IsAlive& is_alive);
  // How many of all calls had ended, and how many had not, according to the tallies last taken.
  std::uint64_t ended() const { return gone_.ended + living_.ended; }
  std::uint64_t under_way() const { return gone_.under_way + living_.under_way; }

 private:
  const FunctionNumbers& numbers_;
  TallyMap<abi::cb_tally> functions_;
  std::optional<TallyMap<abi::cb_call_times>> classes_;
  std::optional<TallyMap<std::uint64_t>> failures_;
  struct Ends {
    std::uint64_t ended = 0, under_way = 0;
    void add(const abi::cb_tally& sum);
  };
  Ends living_, gone_;  // of processes whose tallies are there, and of those that are gone
};

}  // namespace cudabpf
