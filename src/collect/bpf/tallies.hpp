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
  // All there are. Those of processes that are gone are handed out once more and removed. Needs
  // CAP_BPF where the kernel leaves maps to those who have it.
  std::vector<Tally> take(const IsAlive& is_alive);
  // How many of the calls had not ended, according to the tallies last taken.
  std::uint64_t under_way() const { return left_under_way_ + under_way_; }

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
  std::uint64_t under_way_ = 0;
  std::uint64_t left_under_way_ = 0;  // by processes that are gone
  bool failed_ = false;               // and said so
};

}  // namespace cudabpf
