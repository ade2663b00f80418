// Other code in a kernel's place: whether it does the same, and how fast: `replay --with`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/launches.hpp"
#include "replay/messages.hpp"
#include "replay/replayer.hpp"
#include "replay/trial/occurrences.hpp"

namespace cudabpf::replay {

struct TrialOptions {
  std::string folder;     // with one kernel alone
  std::string candidate;  // a file with code
  std::string kernel;     // mangled
  std::uint32_t rounds = 4;
  std::uint32_t runs = 10;  // that are timed
  std::chrono::milliseconds patience{std::chrono::minutes(1)};
  std::optional<ValueType> as;  // what is compared by `tolerance`; nothing: all bytes must be equal
  double tolerance = 0;
};

// A distinct launch with both codes. Nothing: it was not timed.
struct TimedPair {
  std::uint32_t launch = 0;  // of distinct_launches()
  std::optional<IsolatedTime> original, candidate;
};

enum class Verdict : std::uint8_t { same, within, different, failed };

struct Trial {
  Gpu gpu;
  std::vector<std::string> notes;
  std::vector<Poisoned> poisoned;  // by occurrence; empty: none is
  std::vector<Attempted> attempted;
  std::vector<Addresses> strayed;  // other memory that it changed
  std::optional<Failure> failure;  // of the candidate
  std::vector<TimedPair> times;
  Verdict verdict = Verdict::failed;
};

// An error is one of the folder or of the original, not of the candidate.
Result<Trial> try_candidate(const bundle::Folder& folder, const Tape& tape,
                            const TrialOptions& options);

// Each occurrence once a round, in an order that nobody can foresee.
std::vector<std::uint64_t> shuffled(std::size_t occurrences, std::uint32_t rounds);

// How many times as fast the candidate is: the median of one by that of the other, and the least
// and the most of samples that were taken one after the other.
struct SpeedUp {
  double median = 0, least = 0, most = 0;
};
std::optional<SpeedUp> speed_up(const std::vector<std::uint64_t>& original_ns,
                                const std::vector<std::uint64_t>& candidate_ns);

}  // namespace cudabpf::replay
