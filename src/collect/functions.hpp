// Which functions are traced, and by which number the kernel side knows each.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
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
// has never seen. Symbols are added by the thread that attaches and read by the one that reads the
// ring.
class FunctionNumbers {
 public:
  struct Numbered {
    std::uint16_t id;
    const Function* function;
  };
  Numbered number(std::string_view symbol);
  const Function* find(std::uint16_t id) const;

 private:
  struct Unknown {
    std::string symbol;
    Function function;
  };
  mutable std::mutex mutex_;
  std::deque<Unknown> unknown_;  // addresses stay
};

}  // namespace cudabpf
