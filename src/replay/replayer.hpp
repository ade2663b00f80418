// Replays a capture in processes of its own, a new one whenever one has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/launches.hpp"
#include "replay/messages.hpp"
#include "replay/tape.hpp"
#include "replay/worker_process.hpp"

namespace cudabpf::replay {

struct Options {
  std::string folder;
  std::chrono::milliseconds patience{std::chrono::minutes(1)};
  std::uint32_t runs = 10;      // that are timed
  std::uint32_t window_ms = 0;  // in which the energy of each launch is measured; 0: it is not
};

// An operation that ended the process that ran it, or that did not end.
struct Failure {
  std::string what, why;
  std::string text() const { return what + ": " + why; }
};
DESCRIBE(Failure, what, why)

struct FullReplay {
  Gpu gpu;
  std::optional<Comparison> comparison;  // none: the capture has no contents
  std::optional<Timing> timing;
  std::vector<Skipped> skipped;
  std::vector<Failure> failures;
  std::vector<std::string> notes;

  // From what the program left.
  bool is_different() const { return comparison && comparison->is_different(); }
};

// A launch by itself. `time`: nothing if it was not run, or ended its process.
struct IsolatedLaunch {
  std::uint32_t launch = 0;  // of distinct_launches()
  std::optional<IsolatedTime> time = {};
  std::optional<IsolatedEnergy> energy = {};
};

struct IsolatedReplay {
  FullReplay tape;  // in which each of them was run by itself, and then the rest
  std::vector<IsolatedLaunch> launches;
  // With a window: while the GPU did nothing, and while the tape was run over and over.
  std::optional<Energy> idle, repeated;
  std::optional<std::string> no_energy;  // why some of it is not known
};

class Replayer {
 public:
  Replayer(const Manifest& manifest, const Tape& tape, Options options)
      : manifest_(&manifest), tape_(&tape), options_(std::move(options)) {}

  // The GPU that it would run on.
  Result<Gpu> gpu();
  Result<FullReplay> full();
  // Those of the distinct launches, one after the other; and the energy that they take.
  Result<IsolatedReplay> isolated(const std::vector<std::uint32_t>& launches);

 private:
  Result<> start();
  Result<> make_ready();
  Result<Answer> run(Task task);
  Result<> find_failure(const std::string& why);
  Result<> add_failure(std::uint64_t step, const std::string& why);
  // Runs it over and over for a while that is long enough for iterations.
  Result<> repeat(IsolatedReplay& replay);
  Result<std::optional<Energy>> measured(Task task, std::uint32_t window_ms,
                                         IsolatedReplay& replay);
  // False: a process has ended.
  Result<bool> isolate_all(IsolatedReplay& replay, const std::vector<DistinctLaunch>& distinct);

  const Manifest* manifest_;
  const Tape* tape_;
  Options options_;
  std::optional<WorkerProcess> worker_;
  std::vector<std::uint32_t> left_out_;
  std::vector<std::uint64_t> left_steps_;
  std::vector<std::uint32_t> alone_;         // launches that are not run after those before them
  std::vector<std::uint32_t> not_isolated_;  // launches that ended their process
  FullReplay result_;
};

}  // namespace cudabpf::replay
