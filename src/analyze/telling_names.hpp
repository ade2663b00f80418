// Kernel names for a table, as short as still tells them apart. The elementwise kernels of PyTorch
// are all called vectorized_elementwise_kernel, and differ in a template argument.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

// For each name, in order: the function's own name, and the template arguments in which it differs
// from others of that name.
std::vector<std::string> telling_names(const std::vector<std::string_view>& names);

// These names for an answer that is not about kernels alone: each kernel has the same one in all
// answers, since all that were launched are told apart.
class TellingNames {
 public:
  explicit TellingNames(const Names& names) : names_(names) {}

  void line(const Line& line);
  // Once all lines were seen.
  void finish();
  std::string of(Name kernel) const;

 private:
  static constexpr std::size_t MOST = 1 << 15;  // kernels; later ones are not told apart

  const Names& names_;
  std::unordered_map<std::uint32_t, std::string> told_;  // by the name's number
};

}  // namespace cudabpf::analyze
