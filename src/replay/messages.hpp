// What the process that replays is asked for, and what it answers. It runs foreign code, so what it
// says is read like anything from elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/fields.hpp"
#include "replay/kernel_messages.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::replay {

// The word on the command line that makes this program such a process, and where it finds its
// parent.
inline constexpr const char* WORKER = "__replay_worker";
inline constexpr int SOCKET_FD = 3, PROGRESS_FD = 4;

enum class Task : std::uint8_t {
  describe,  // the GPU
  prepare,   // the capture's memory and code
  check,     // runs the tape at least twice, and compares what comes out
  walk,      // runs the tape, and waits for each step, to find out which one fails
  time,      // runs the tape several times
  isolate,   // runs the tape up to a launch, which is then run and timed by itself
  finish,    // runs the rest of the tape, and compares what comes out
  rest,      // does nothing for a while, and measures energy
  repeat,    // runs the tape over and over, and measures energy
  extract,   // writes a folder with some launches of the tape, and the memory that they need
  poison,    // finds what launches write without reading it
  attempt,   // runs launches in some order, and compares what each leaves
};
inline constexpr std::array<std::string_view, 12> TASKS = {
    "describe", "prepare", "check",  "walk",    "time",   "isolate",
    "finish",   "rest",    "repeat", "extract", "poison", "attempt"};
constexpr const auto& names_of(Task) { return TASKS; }

struct Request {
  Task task = Task::describe;
  std::string folder = {};
  std::vector<std::uint32_t> left_out = {};    // kernels that are not run
  std::vector<std::uint64_t> left_steps = {};  // steps that are not run
  std::uint32_t runs = 0;
  std::uint32_t launch = 0;     // of distinct_launches()
  bool alone = false;           // it is not run after those before it
  std::uint32_t window_ms = 0;  // in which energy is measured; 0: it is not
  // prepare: the file with the code that takes a kernel's place, and the kernel's name
  std::string candidate = {}, candidate_for = {};
  std::vector<std::uint64_t> launches = {};  // extract: steps; attempt: occurrences, in that order
  std::string output = {};                   // extract: the new folder
  MemoryTaken memory = MemoryTaken::pointers;  // extract
  std::vector<Poisoned> poisoned = {};         // attempt: by occurrence
  std::vector<Addresses> within = {};          // poison: the memory in which it may be
};
DESCRIBE(Request, task, folder, left_out, left_steps, runs, launch, alone, window_ms, candidate,
         candidate_for, launches, output, memory, poisoned, within)

struct Gpu {
  std::string name, driver;  // "NVIDIA H200", "13.0": the CUDA version that it has
  std::uint32_t major = 0, minor = 0;
  std::uint64_t memory = 0;
};
DESCRIBE(Gpu, name, driver, major, minor, memory)

// Steps that were not run.
struct Skipped {
  std::string what, why;
  std::uint64_t count = 0, call = 0;  // of the first
};
DESCRIBE(Skipped, what, why, count, call)

struct Bytes {
  std::uint64_t compared = 0, equal = 0, different = 0;
  std::uint64_t not_deterministic = 0;  // of values that differ between runs
  std::uint64_t not_written = 0;        // by the tape, and what was there before is not known
};
DESCRIBE(Bytes, compared, equal, different, not_deterministic, not_written)

struct Difference {  // the first bytes of some that follow each other
  std::string where;
  bundle::Address at;
  std::uint64_t size = 0;
  std::string expected, got;  // in hexadecimal
};
DESCRIBE(Difference, where, at, size, expected, got)

struct Comparison {
  Bytes memory, copies, variables;
  std::uint64_t unknown = 0;  // bytes of memory whose contents were not captured
  std::uint32_t runs = 0;
  std::vector<Difference> differences;

  bool is_different() const { return memory.different || copies.different || variables.different; }
};
DESCRIBE(Comparison, memory, copies, variables, unknown, runs, differences)

struct LaunchTime {
  std::uint32_t launch = 0;  // of distinct_launches()
  std::uint64_t count = 0, total_ns = 0, least_ns = 0, most_ns = 0;
};
DESCRIBE(LaunchTime, launch, count, total_ns, least_ns, most_ns)

struct Timing {
  std::vector<std::uint64_t> runs_ns;
  std::vector<LaunchTime> launches;
};
DESCRIBE(Timing, runs_ns, launches)

struct Clocks {
  std::uint32_t sm_mhz = 0;
  std::uint64_t throttle = 0;  // bits of Throttle
};
DESCRIBE(Clocks, sm_mhz, throttle)

struct IsolatedTime {
  std::vector<std::uint64_t> warm_ns = {}, cold_ns = {}, in_turn_ns = {};  // a sample each
  std::uint32_t launches = 0;  // in a warm sample, which is their mean
  // Run over and over it does less than once, so it was run once for each sample in turn, and the
  // other times say nothing.
  bool does_less_again = false;
  std::optional<Clocks> clocks = {};  // after the warm samples
};
DESCRIBE(IsolatedTime, warm_ns, cold_ns, in_turn_ns, launches, does_less_again, clocks)

// What all of the GPU used within a window, which begins and ends with a step of its counter.
struct Energy {
  std::uint64_t window_ns = 0, millijoules = 0;
  std::uint64_t rounds = 0;  // of what was done over and over
};
DESCRIBE(Energy, window_ns, millijoules, rounds)

// What a launch used by itself. Nothing: it was not measured.
struct IsolatedEnergy {
  std::optional<Energy> warm = {};
  // With the L2 cache emptied before each launch, and of emptying it alone.
  std::optional<Energy> emptied = {}, emptying = {};
};
DESCRIBE(IsolatedEnergy, warm, emptied, emptying)

struct Answer {
  std::optional<std::string> error, hint;
  std::optional<std::uint64_t> step;  // at which it failed, or was when it failed
  std::optional<Gpu> gpu;
  std::vector<Addresses> moved;  // that were not to be had
  std::vector<std::string> notes;
  std::vector<Skipped> skipped;
  std::optional<Comparison> comparison;
  std::optional<Timing> timing;
  std::optional<IsolatedTime> isolated;
  std::optional<Energy> energy;
  std::optional<IsolatedEnergy> isolated_energy;
  std::optional<std::string> no_energy;  // why there is none
  std::optional<Extracted> extracted;
  std::vector<Poisoned> poisoned;
  std::vector<Attempted> attempted;
  std::vector<Addresses> strayed;  // what changed of all other memory
};
DESCRIBE(Answer, error, hint, step, gpu, moved, notes, skipped, comparison, timing, isolated,
         energy, isolated_energy, no_energy, extracted, poisoned, attempted, strayed)

std::string line_of(const Request& request);
std::string line_of(const Answer& answer);
Result<Request> request_in(std::string_view line);
Result<Answer> answer_in(std::string_view line);

// Lines of text through a socket.
class Lines {
 public:
  explicit Lines(Fd socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.get(); }
  Result<> write(std::string_view line);
  // Waits for one. Nothing: the other end is closed.
  Result<std::optional<std::string>> read();

  // One that is here already.
  std::optional<std::string> take();
  // Waits for more of one. False: the other end is closed.
  Result<bool> receive();

 private:
  Fd socket_;
  std::string read_;
};

}  // namespace cudabpf::replay
