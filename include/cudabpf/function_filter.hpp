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
  tallied,        // only counted
  silently,       // recorded to learn from its calls, which have no lines
  until_capture,  // only counted until its process begins a capture; then whole
  entry,
  whole,  // entry and return
};
using RecordedOf = std::function<Recorded(const Function&)>;

struct FunctionFilter {
  Profile profile = Profile::default_;
  std::vector<std::string> only;  // glob patterns of API or symbol names; empty: all
  std::vector<std::string> exclude;
  std::vector<ApiId> libraries{};  // trace only functions of these; empty: all, and
  bool shapes = true;              // also those that are traced only with --shapes,
  bool blocks = false;             // and with --blocks
  bool returns = true;
  // Only count the calls of functions for which that is enough. From inside, all are recorded.
  bool tally = false;
  bool holders = true;  // also whose code makes allocations
  // The stacks of calls come as records of their own, while the calls are open.
  bool stacks_follow = false;
  // But record what says which captured collectives run, once a process captures.
  bool captured_collectives = false;
  // But record launches, for the names of kernels.
  bool single_launches = false;

  bool selects(ApiId library) const;
  bool selects(const Function& function) const;
  bool selects_some_of(ApiId library) const;  // of the functions that are known
  // A function of the table that `only` names if the case of letters does not matter.
  const Function* meant() const;
  bool entry_only(const Function& function) const;
  // If kernels are named, calls that let their handles be reused are recorded in any case.
  Recorded records(const Function& function) const;
};

}  // namespace cudabpf
