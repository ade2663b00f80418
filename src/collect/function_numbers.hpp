// By which number whoever records knows each function.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

// Numbers for functions: the table's own index, and beyond it one for each symbol that the table
// has never seen, as far as 16 bits go. Symbols are added by the thread that attaches and read by
// the one that reads the ring.
class FunctionNumbers {
 public:
  struct Numbered {
    std::uint16_t id;
    const Function* function;
  };
  std::optional<Numbered> number(std::string_view symbol);  // nothing: all are given away
  const Function* find(std::uint16_t id) const;

 private:
  struct Unknown {
    std::string symbol;
    Function function;
  };
  mutable std::mutex mutex_;
  std::deque<Unknown> unknown_;                                    // addresses stay
  std::unordered_map<std::string_view, std::uint16_t> by_symbol_;  // of `unknown_`
};

}  // namespace cudabpf
