// What the kernel side has counted of calls that make no records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "collect/function_numbers.hpp"
#include "cudabpf/abi.h"
#include "cudabpf/tally.hpp"

namespace cudabpf {

class Tallies {
 public:
  // `map` has a descriptor that outlives this.
  Tallies(int map, const FunctionNumbers& numbers);

  using IsAlive = std::function<bool(std::uint32_t pid)>;
  // All tallies. Those of processes that are gone are handed out a last time and removed. Needs
  // CAP_BPF where the kernel restricts maps to processes with it.
  std::vector<Tally> take(const IsAlive& is_alive);
  // How many of all calls had ended, and how many had not, according to the tallies last taken.
  std::uint64_t ended() const { return gone_.ended + living_.ended; }
  std::uint64_t under_way() const { return gone_.under_way + living_.under_way; }

 private:
  struct Entry {
    abi::cb_tally_key key{};
    abi::cb_tally sum{};
  };
  std::vector<Entry> read();
  abi::cb_tally sum_of(std::size_t at) const;  // over CPUs, in `values_`
  bool remove(Entry& entry);

  const int map_;
  const FunctionNumbers& numbers_;
  const std::size_t cpus_;
  std::vector<abi::cb_tally_key> keys_;
  std::vector<abi::cb_tally> values_;  // of each key on each CPU
  struct Ends {
    std::uint64_t ended = 0, under_way = 0;
    void add(const abi::cb_tally& sum);
  };
  Ends living_, gone_;   // of processes whose tallies are there, and of those that are gone
  bool failed_ = false;  // and this was reported
};

}  // namespace cudabpf
