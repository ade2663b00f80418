// Which functions are traced, and by which number the kernel side knows each.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "correlate/coverage.hpp"
#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

struct FunctionFilter {
  Profile profile = Profile::default_;
  std::vector<std::string> only;  // glob patterns of API or symbol names; empty: all
  std::vector<std::string> exclude;
  bool returns = true;

  bool selects(const Function& function) const;
  bool entry_only(const Function& function) const;
  // Where kernels are named, what makes their handles those of others is recorded in any case.
  Recorded records(const Function& function) const;
};

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
