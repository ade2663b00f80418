// What `cudabpf replay` does with one kernel: --export and --with.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "util/result.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cudabpf::cli {

struct KernelFlags {
  std::string export_pattern, candidate, as;
  std::uint32_t occurrences = 4;
  double tolerance = 0;
  bool is_given() const { return !export_pattern.empty() || !candidate.empty(); }
};

// What `replay` has from its other options.
struct KernelRequest {
  std::string folder, output, match;
  std::uint32_t runs = 10;
  std::chrono::milliseconds patience{};
  bool json = false;
};

// Adds the options. `others` exclude them.
void add_kernel_options(CLI::App& sub, KernelFlags& flags,
                        std::initializer_list<CLI::Option*> others);
Result<int> replay_kernel(const KernelFlags& flags, const KernelRequest& request);

}  // namespace cudabpf::cli
