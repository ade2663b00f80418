// What differs between two traces, A and B.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/diff/measures.hpp"

namespace cudabpf::analyze {

// Two runs of one program are never alike. Durations are said to have changed if their medians
// differ by more than MIN_CHANGE, and by more than STANDARD_ERRORS times what medians of that many
// calls, with that spread, differ by chance; and never with fewer calls than MIN_CALLS.
struct Judgement {
  static constexpr std::uint64_t MIN_CALLS = 10;
  static constexpr double MIN_CHANGE = 0.05;
  static constexpr double STANDARD_ERRORS = 3;

  enum class Verdict : std::uint8_t { not_timed, few, same, slower, faster };
  Verdict verdict = Verdict::not_timed;
  double change = 0;  // of the median, in percent of A's
};
Judgement judge(const Durations& a, const Durations& b);
std::string_view to_string(Judgement::Verdict verdict);

struct Difference {
  // A difference in how, or of what, the traces were taken.
  struct Setting {
    std::string what, a, b;
    std::string_view so;  // what it means for the comparison; may be empty
  };
  enum class Unit : std::uint8_t { count, time, bytes, share };  // share: in millionths
  struct Total {
    std::string name;
    Unit unit = Unit::count;
    std::uint64_t a = 0, b = 0;
    bool in_a = true, in_b = true;  // whether that trace has such a thing
    Judgement judgement = {};       // of medians
  };
  // One function, or one group of ioctls.
  struct Timed {
    std::string name;
    std::uint64_t count_a = 0, count_b = 0;  // 0: it is not in that trace
    Durations a, b;
    Judgement judgement;

    std::int64_t change() const {  // of the total, ns
      return static_cast<std::int64_t>(b.total()) - static_cast<std::int64_t>(a.total());
    }
    void add(const Timed& other);
  };
  struct Kernel {
    std::string name;  // as short as still tells it from others in both traces
    std::string full;  // empty: not known
    KernelClass kernel_class = KernelClass::other;
    Kernels::Launch launch;
    std::uint64_t a = 0, b = 0;

    void add(const Kernel& other) {
      a += other.a;
      b += other.b;
    }
  };
  struct Failure {
    std::string name, error;
    std::uint64_t a = 0, b = 0;
  };

  std::vector<Setting> settings;
  std::vector<Total> totals;
  std::vector<Total> iterations;  // of the thread that launches most; empty if neither has any
  std::vector<std::string> on_iterations;  // what to know when comparing them
  std::vector<Total> phases;               // of that thread
  std::vector<Timed> functions;            // the largest change of the total first
  std::vector<Timed> ioctls;               // by group; empty unless both traces have them
  std::vector<Kernel> kernels;    // those launched more or less often; the largest change first
  std::vector<Failure> failures;  // those that became more or fewer
  bool by_configuration = false;

  bool none() const;  // nothing that is compared differs
};

Difference difference(const Measures& a, const Measures& b, Kernels::By by);

Json difference_json(const Difference& difference);
void add_difference(Page& page, const Difference& difference, std::size_t at_most);

}  // namespace cudabpf::analyze
