// What is not the same in two traces, A and B.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/diff/measures.hpp"

namespace cudabpf::analyze {

// Two runs of one program are never alike. That durations have changed is said where their medians
// differ by more than MIN_CHANGE and by more than STANDARD_ERRORS of what medians of so many calls,
// spread like these, differ by chance; and never of fewer calls than MIN_CALLS.
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
  // How the traces were taken, and of what, where that is not the same.
  struct Setting {
    std::string what, a, b;
    std::string_view so;  // what follows for the comparison; may be empty
  };
  enum class Unit : std::uint8_t { count, time, bytes, share };  // in millionths
  struct Total {
    std::string name;
    Unit unit = Unit::count;
    std::uint64_t a = 0, b = 0;
    bool in_a = true, in_b = true;  // that trace has such a thing
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
    std::string name;  // as short as it can be told from others of both traces
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
  std::vector<Total> iterations;  // of the thread that launches most; none, if neither has any
  std::vector<std::string> on_iterations;  // what is to be known to compare them
  std::vector<Total> phases;               // of that thread
  std::vector<Timed> functions;            // the largest change of the total first
  std::vector<Timed> ioctls;               // by group; none, unless both traces have them
  std::vector<Kernel> kernels;    // those launched more or less often; the largest change first
  std::vector<Failure> failures;  // those that are more or fewer
  bool by_configuration = false;

  bool none() const;  // of what is compared, nothing differs
};

Difference difference(const Measures& a, const Measures& b, Kernels::By by);

Json difference_json(const Difference& difference);
void add_difference(Page& page, const Difference& difference, std::size_t at_most);

}  // namespace cudabpf::analyze
