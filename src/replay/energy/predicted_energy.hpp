// The energy of an iteration, predicted from its launches by themselves, beside what the whole
// iteration used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/launches.hpp"
#include "replay/replayer.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

// An iteration that was measured as a whole: the tape, run over and over, or the program's.
struct MeasuredIteration {
  double iterations = 0, window_s = 0;
  double joules = 0, error_j = 0;  // of one; the error is that of a step of the counter
  double seconds = 0;              // of one
  // For an iteration of this length; nothing: the idle power is not known.
  std::optional<double> predicted_j = {}, error_percent = {};

  double watts() const { return seconds > 0 ? joules / seconds : 0; }
};

struct LaunchEnergy {
  std::uint32_t launch = 0;    // of distinct_launches()
  std::uint64_t count = 0;     // on the tape
  std::uint64_t launches = 0;  // that were measured
  double window_s = 0;
  double joules = 0, error_j = 0;  // of one, warm, and what the GPU uses anyway
  // What one launch uses above that: with a warm L2 cache, with one that was emptied before it, and
  // between the two, as its time in turn lies between theirs.
  std::optional<double> warm_j = {}, cold_j = {}, in_turn_j = {};
  double watts = 0;
};

struct PredictedEnergy {
  std::optional<double> idle_w;  // while the GPU did nothing
  double idle_window_s = 0;
  std::vector<LaunchEnergy> launches;            // those that use most on the tape first
  double above_idle_j = 0;                       // all launches of the tape that were measured
  std::uint64_t measured = 0, not_measured = 0;  // launches of the tape
  std::uint64_t copies = 0;                      // and fills, which are not measured
  std::optional<MeasuredIteration> tape, program;
  std::string no_energy, no_program;  // why something is missing; empty: nothing says so
};

PredictedEnergy predict_energy(const IsolatedReplay& replay, const Tape& tape,
                               const Manifest& manifest);
// The program's iterations, as its trace has them.
struct ProgramEnergy {
  std::optional<MeasuredIteration> each;
  std::string why_not;  // they are not known; empty, too: nobody asked
};
void add_program(PredictedEnergy& energy, const ProgramEnergy& program);

}  // namespace cudabpf::replay
