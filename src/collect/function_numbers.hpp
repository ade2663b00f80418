// The numbers that stand for functions in records.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cudabpf/cuda_api.hpp"
#include "util/hash.hpp"

namespace cudabpf {

// A function's number is its index in the table; beyond the table, each unknown symbol gets the
// next number, until 16 bits are used up. The thread that attaches adds symbols, and the thread
// that reads the ring looks them up.
class FunctionNumbers {
 public:
  struct Numbered {
    std::uint16_t id;
    const Function* function;
  };
  std::optional<Numbered> number(ApiId api,
                                 std::string_view symbol);  // nothing if all numbers are taken
  const Function* find(std::uint16_t id) const;

 private:
  struct Unknown {
    std::string symbol;
    Function function;
  };
  mutable std::mutex mutex_;
  std::deque<Unknown> unknown_;                         // its elements never move
  HashMap<std::string_view, std::uint16_t> by_symbol_;  // of `unknown_`
};

}  // namespace cudabpf
