// Who waited for whom in a communicator's collectives, and what that means.
//
// Where none can be done before all have come, the shortest kernel is that of the rank that came
// last: it takes as long as the transfer. What another rank's kernel takes longer is waiting for
// that rank. Ranks that nothing delays also differ, by up to NOISE.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/collectives/matches.hpp"

namespace cudabpf::analyze {

// A kernel of a rank waited for another rank, from its beginning.
struct PeerWait {
  std::uint64_t process = 0, communicator = 0;  // of who waited
  std::uint32_t rank = 0, awaited = 0;
  std::int64_t device = 0;
  std::uint64_t begin = 0, end = 0;

  std::uint64_t time() const { return end - begin; }
};

enum class SkewVerdict : std::uint8_t { inconclusive, transfer, mixed, skew };
std::string_view to_string(SkewVerdict verdict);

class Skew {
 public:
  static constexpr std::uint64_t NOISE = 600'000;  // ns
  // Waiting beyond that is less than a fifth of the time in collectives, or more than half of it.
  static constexpr double LITTLE = 0.2, MUCH = 0.5;
  static constexpr std::size_t FEWEST_STEPS = 3;
  // One is named if it was late by most of what all were, in most of the steps in which any was,
  // and in half of all steps.
  static constexpr double SHARE_OF_MOST = 2.0 / 3;

  struct Waited {
    std::uint64_t count = 0, total = 0, longest = 0;
    void add(std::uint64_t time);
  };
  struct Step {
    std::uint64_t matched = 0;
    std::uint64_t time = 0, waited = 0;           // of all ranks; waiting beyond noise
    std::map<std::uint32_t, std::uint64_t> late;  // by how much a rank came after the first
  };
  struct Named {
    std::uint32_t rank = 0;
    std::uint64_t per_step = 0;  // the median
  };

  // On the GPU, or on the host, where only the times of entering are known; these are wrong by up
  // to `error` between ranks.
  enum class Times : std::uint8_t { gpu, host };
  explicit Skew(Times times, std::uint64_t error = 0)
      : times_(times), noise_(error > NOISE ? error : NOISE) {}

  // `ranks`: who it was, in the order of the match's; `of_all`: how many the communicator has;
  // `step`: in which it was, if in any.
  void add(const Match& match, const std::vector<std::uint32_t>& ranks, std::uint64_t of_all,
           std::optional<std::uint64_t> step, std::vector<PeerWait>& waits);

  Times times() const { return times_; }
  std::uint64_t noise() const { return noise_; }
  std::uint64_t matched() const { return matched_; }  // collectives with two ranks' times, or more
  std::uint64_t exchanges() const { return exchanges_; }  // of these, by sends and receives
  std::uint64_t time() const { return time_; }            // of all ranks
  std::uint64_t transfer() const { return transfer_; }
  std::uint64_t below_noise() const { return below_noise_; }  // waiting
  std::uint64_t beyond_noise() const { return beyond_noise_; }
  // By who waited, and for whom; beyond noise.
  const std::map<std::pair<std::uint32_t, std::uint32_t>, Waited>& waited() const {
    return waited_;
  }
  const std::map<std::uint64_t, Step>& steps() const { return steps_; }  // by their numbers

  SkewVerdict verdict() const;
  // The rank that makes the others wait in most steps. Nothing: none, or not always the same.
  std::optional<Named> named() const;
  double share_of_waiting() const;  // of a usual step's time in collectives

 private:
  Times times_;
  std::uint64_t noise_;
  std::uint64_t matched_ = 0, exchanges_ = 0;
  std::uint64_t time_ = 0, transfer_ = 0, below_noise_ = 0, beyond_noise_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Waited> waited_;
  std::map<std::uint64_t, Step> steps_;
};

}  // namespace cudabpf::analyze
