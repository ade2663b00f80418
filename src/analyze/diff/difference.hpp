// What differs between two sides, A and B: a trace each, or several.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analyze/diff/compared.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

// One side of the comparison: one trace, or several of the same program.
struct DiffSide {
  std::vector<TraceFigures> traces;
  // The one of them whose functions, kernels, failures and ioctls are compared.
  const Measures* shown = nullptr;
  std::size_t shown_at = 0;
};
// "A"; "A2", if there are several.
std::string name_of(char letter, const DiffSide& side, std::size_t trace);
// How the traces differ in what was traced, and how.
std::vector<Setting> settings_unlike(const DiffSide& a, const DiffSide& b);
// The one of middle duration.
std::size_t middle_trace(const std::vector<TraceFigures>& traces);

struct Difference {
  // One function, one group of ioctls, or one kernel on the GPU.
  struct Timed {
    std::string name;
    std::string full;                        // of a kernel, the whole name
    std::uint64_t count_a = 0, count_b = 0;  // 0: it is not in that trace
    Durations a, b;
    Judgement judgement;

    std::int64_t change() const {  // of the total, ns
      constexpr std::uint64_t MAX = std::numeric_limits<std::int64_t>::max();
      std::uint64_t ns = a.total() > b.total() ? a.total() - b.total() : b.total() - a.total();
      auto change = static_cast<std::int64_t>(std::min(ns, MAX));
      return a.total() > b.total() ? -change : change;
    }
    void add(const Timed& other);
  };
  struct Kernel {
    std::string name;  // as short as still distinguishes it from others in both traces
    std::string full;  // empty: not known
    KernelClass kernel_class = KernelClass::other;
    Kernels::Launch launch;
    std::uint64_t a = 0, b = 0;  // how often it ran

    void add(const Kernel& other) {
      a = saturating_sum(a, other.a);
      b = saturating_sum(b, other.b);
    }
  };
  struct Failure {
    std::string name, error;
    std::uint64_t a = 0, b = 0;
  };

  std::vector<Setting> settings;
  std::vector<Compared> totals;
  std::vector<Compared> iterations;  // of the thread that launches most; empty: there are none
  std::vector<std::string> on_iterations;  // what to know when comparing them
  std::vector<Compared> phases;            // of that thread
  std::vector<Timed> functions;            // the largest change of the total first
  std::vector<Timed> ioctls;               // by group; empty unless both traces have them
  std::vector<Kernel> kernels;  // those that ran more or less often; the largest change first
  // GPU time of each; empty unless both traces have it. The largest change of the total first.
  std::vector<Timed> gpu_kernels;
  std::vector<Failure> failures;  // those that became more or fewer
  bool by_configuration = false;
  // When the first iteration of each began (ns), so that both can be laid over one another.
  std::optional<std::uint64_t> begins_a, begins_b;
  std::string shown;  // "A2 and B1", if a side has several traces; else empty

  bool none() const;  // nothing that is compared differs
};

Difference difference(const DiffSide& a, const DiffSide& b, Kernels::By by);

// What a person wants to know first: which side is faster, by the time of an iteration where both
// have iterations, else by that of the whole trace.
struct DiffVerdict {
  // B, beside A. `apart`: their times do not measure the same thing.
  enum class Is : std::uint8_t { same, unclear, apart, faster, slower };
  Is is = Is::same;
  const Compared* by = nullptr;  // null: nothing can be compared
  std::string title, text;
};
DiffVerdict verdict_of(const Difference& difference);

Json difference_json(const Difference& difference);
void add_difference(Page& page, const Difference& difference, std::size_t at_most);

}  // namespace cudabpf::analyze
