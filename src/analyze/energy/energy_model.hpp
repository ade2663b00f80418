// Which kernels a GPU's energy went to, as a model: the power above idle, as it was sampled, is
// shared among what ran between two samples by how long each ran. No counter shows that: a kernel
// that needs more power than its neighbours gets too little. Power also varies while nothing runs,
// so what ran for a moment gets nothing: otherwise it would be charged all of that.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "analyze/derived/classes_by_name.hpp"
#include "analyze/time_buckets.hpp"
#include "trace/read/line.hpp"
#include "trace/read/names.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

// What GPUs do besides kernels, whose classes come first.
enum class OtherWork : std::uint8_t { copies, fills, whole_graphs };
inline constexpr std::size_t ENERGY_SHARERS = KERNEL_CLASSES + 3;
std::string_view name_of_sharer(std::size_t sharer);  // "matrix multiply", "copies"

struct ModelledEnergy {
  struct Share {
    std::uint64_t time = 0;         // its operations, added up
    std::uint64_t shared_time = 0;  // of those long enough to get a share
    double joules = 0;
  };
  std::uint64_t from = 0, to = 0;  // the first and the last sample
  std::array<Share, ENERGY_SHARERS> shares{};
  double unshared = 0;  // joules above idle while nothing ran, or hardly anything
  double above_idle() const;
  bool any_shared() const;
};

// What ran on one GPU when, and how much power the GPU took.
class EnergyModel {
 public:
  explicit EnergyModel(const Names& names) : classes_(names) {}

  void sampled(std::uint64_t ts, double watts);
  void worked(const Line& work, std::uint64_t until);  // what ran later is left out

  bool any() const { return !ordinals_.empty(); }
  // All operations have the same device number in their process.
  bool is_one_gpu() const { return ordinals_.size() <= 1; }
  std::size_t processes() const { return pids_.size(); }
  std::uint64_t time() const { return time_; }  // of all operations, added up
  // Nothing: there are no two samples.
  std::optional<ModelledEnergy> share(double idle_watts) const;

 private:
  static constexpr std::size_t MAX = 256;  // processes, and GPUs, that are distinguished

  struct Bucket {
    std::array<std::uint64_t, ENERGY_SHARERS> times{};
    double watts = 0;                     // a sum
    std::uint64_t samples = 0, last = 0;  // ts of the last

    void merge(const Bucket& next);
  };

  std::size_t sharer_of(const Line& work);

  ClassesByName classes_;
  TimeBuckets<Bucket> buckets_;
  std::uint64_t time_ = 0;
  HashSet<std::int64_t> ordinals_;
  HashSet<std::uint32_t> pids_;
};

}  // namespace cudabpf::analyze
