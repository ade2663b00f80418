// Which functions are traced, and how much of their calls is recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

// How much of a function's calls is recorded.
enum class Recorded : std::uint8_t {
  no,
  silently,  // for what follows from it: its calls have no lines
  entry,
  whole,  // and its result
};
using RecordedOf = std::function<Recorded(const Function&)>;

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

}  // namespace cudabpf
