// What went wrong in a trace: calls and ioctls that failed, errors of GPUs, calls that never
// returned, processes that ended badly. An answer of "not ready yet" is not a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/memory/memory.hpp"
#include "state/error_meanings.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Errors : public Analysis {
 public:
  // One occurrence of something that may have happened often.
  struct Example {
    std::uint64_t id = 0;  // of the call, or of the call that an operation served; 0: none
    std::uint64_t ts = 0;
    std::uint32_t pid = 0, tid = 0;
    std::string text;  // its arguments, or the driver's message
  };
  struct Failure {
    std::string name;  // of what failed
    std::string error;
    std::uint64_t count = 0;
    std::uint64_t first = ~std::uint64_t{0}, last = 0;  // ts
    Example example;                                    // the first in the trace
    Weight weight = Weight::failure;
    std::vector<std::uint64_t> processes;  // numbers, in order; MAX_PROCESSES: perhaps more

    void add_process(std::uint64_t number);
    void add(const Failure& other);
  };
  struct Open {
    std::uint64_t id = 0, parent = 0;  // for an operation: 0, and the call that it served
    std::string what;
    std::uint64_t ts = 0;
    std::uint64_t open_for = 0;  // ns, until its process or the trace ended
    bool process_ended = false;  // while it was open
    std::uint32_t pid = 0, tid = 0;
    std::string args;
  };
  struct LastCall {
    std::uint64_t id = 0, ts = 0;
    Name name, error;
    bool unfinished = false;
  };
  struct Exit {
    std::uint32_t pid = 0;
    std::uint64_t ts = 0;
    std::string comm;
    std::int64_t code = 0;
    std::int64_t signal = 0;  // 0: no signal ended it
    std::optional<LastCall> last_call, last_failure;
  };
  struct Event {
    std::uint64_t ts = 0, id = 0;
    std::uint32_t pid = 0, tid = 0;
    std::string what, error;
  };

  struct Answer {
    std::uint64_t calls = 0, failed_calls = 0, failed_operations = 0;
    std::uint64_t without_result = 0;  // calls that may or may not have failed
    std::uint64_t usual_failures = 0;  // failures that sound programs have, too
    std::uint64_t calls_open = 0;
    std::uint64_t all_open = 0;     // these and operations, including those not in the list
    std::uint64_t bad_exits = 0;    // including those not in the list
    std::vector<Failure> failures;  // of calls; the gravest first, then the most frequent
    std::vector<Failure> refusals;  // of operations on the driver's devices
    std::vector<Failure> gpu_errors;
    std::vector<Failure> read_faults;
    std::vector<Open> open;  // the longest first
    std::vector<Exit> exits;
    std::vector<Event> events;  // in the order in which they began
    std::uint64_t events_left_out = 0;
  };

  static constexpr std::size_t MAX_PROCESSES = 64;

  // `all`: every single failure is wanted, too.
  Errors(Names& names, bool all);

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;
  Answer answer() const;

 private:
  // At most this many are listed one by one; later ones are only counted.
  static constexpr std::size_t MAX_OPEN = 1000;
  static constexpr std::size_t MAX_EXITS = 1000;
  static constexpr std::size_t MAX_EVENTS = 100'000;
  static constexpr std::size_t MAX_KINDS = 10'000;

  struct Kind {
    Name name, detail, error;
    std::int64_t number = 0;  // if the error has no name
    bool operator==(const Kind&) const = default;
  };
  struct KindHash {
    std::size_t operator()(const Kind& kind) const;
  };
  using Failures = HashMap<Kind, Failure, KindHash>;
  struct Seen {
    LastCall last, last_failure;
  };

  void call(const Line& line);
  void operation(const Line& line);
  void gpu_error(const Line& line);
  void see(const Line& call);
  void end_open_calls(const Line& exit);
  void exit(const Line& line);
  void note(Failures& failures, const Kind& kind, const Line& line);
  void open(const Line& line, Name what);
  void event(const Line& line, Name what, std::string error);
  std::string error_text(Name error, std::int64_t ret) const;
  std::vector<Failure> sorted(const Failures& failures) const;

  Names& names_;
  bool all_;
  struct {
    Name nv_ok, exit, read_fault;
  } words_;
  Answer answer_;
  Failures failures_, refusals_, gpu_errors_, read_faults_;
  std::unordered_map<std::uint64_t, Seen> processes_;  // by number
};

// `memory`: followed through the same trace. It knows who held what when an allocation failed.
Json errors_json(const Errors::Answer& answer, const Memory& memory);
Json errors_columns();  // for the page of `report`
void add_errors(Page& page, const Errors::Answer& answer, const Memory& memory,
                std::size_t at_most);

}  // namespace cudabpf::analyze
