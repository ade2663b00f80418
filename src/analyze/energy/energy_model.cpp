#include "analyze/energy/energy_model.hpp"

#include <algorithm>

#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

// Operations that take less than a twentieth of the time between two samples drown in noise.
constexpr std::uint64_t MAX_TIMES_LONGER = 20;

}  // namespace

std::string_view name_of_sharer(std::size_t sharer) {
  if (sharer < KERNEL_CLASSES) return to_string(static_cast<KernelClass>(sharer));
  switch (static_cast<OtherWork>(sharer - KERNEL_CLASSES)) {
    case OtherWork::copies:
      return "copies";
    case OtherWork::fills:
      return "fills";
    case OtherWork::whole_graphs:
      return "graphs as wholes";
  }
  return {};
}

double ModelledEnergy::above_idle() const {
  double sum = unshared;
  for (const Share& share : shares) sum += share.joules;
  return sum;
}

bool ModelledEnergy::any_shared() const {
  return std::any_of(shares.begin(), shares.end(),
                     [](const Share& share) { return share.shared_time > 0; });
}

void EnergyModel::Bucket::merge(const Bucket& next) {
  for (std::size_t i = 0; i < times.size(); i++) times[i] = saturating_sum(times[i], next.times[i]);
  last = std::max(last, next.last);
  watts += next.watts;
  samples += next.samples;
}

void EnergyModel::sampled(std::uint64_t ts, double watts) {
  Bucket& bucket = buckets_.at(ts);
  bucket.samples++;
  bucket.last = std::max(bucket.last, ts);
  bucket.watts += watts;
}

std::size_t EnergyModel::sharer_of(const Line& work) {
  if (work.op == Type::kernel) return static_cast<std::size_t>(classes_.of(work.kernel));
  OtherWork other = work.op == Type::graph ? OtherWork::whole_graphs
                    : work.op == Op::set   ? OtherWork::fills
                                           : OtherWork::copies;
  return KERNEL_CLASSES + static_cast<std::size_t>(other);
}

void EnergyModel::worked(const Line& work, std::uint64_t until) {
  std::uint64_t end = std::min(work.end(), until);
  if (!work.has(Field::duration) || work.ts >= end) return;
  if (ordinals_.size() < MAX) ordinals_.insert(work.has(Field::ordinal) ? work.ordinal : 0);
  if (pids_.size() < MAX) pids_.insert(work.pid);
  time_ = saturating_sum(time_, end - work.ts);
  std::size_t sharer = sharer_of(work);
  buckets_.at(end - 1);  // from here on no bucket grows
  for (std::uint64_t at = work.ts; at < end;) {
    std::uint64_t next = std::min(end, (at / buckets_.width() + 1) * buckets_.width());
    std::uint64_t& time = buckets_.at(at).times[sharer];
    time = saturating_sum(time, next - at);
    at = next;
  }
}

// A sample covers the time before it, back to the one before.
std::optional<ModelledEnergy> EnergyModel::share(double idle_watts) const {
  ModelledEnergy all;
  const Bucket* before = nullptr;
  std::array<std::uint64_t, ENERGY_SHARERS> times{};
  for (std::size_t i = 0; i < buckets_.size(); i++) {
    const Bucket& bucket = buckets_[i];
    std::uint64_t sum = 0;
    for (std::size_t sharer = 0; sharer < ENERGY_SHARERS; sharer++) {
      times[sharer] = saturating_sum(times[sharer], bucket.times[sharer]);
      sum = saturating_sum(sum, times[sharer]);
    }
    if (!bucket.samples) continue;
    if (before) {
      std::uint64_t window = bucket.last - before->last;
      double watts = bucket.watts / static_cast<double>(bucket.samples) - idle_watts;
      double joules = watts * static_cast<double>(window) / 1e9;
      bool shared = sum > 0 && sum >= window / MAX_TIMES_LONGER;
      for (std::size_t sharer = 0; sharer < ENERGY_SHARERS; sharer++) {
        ModelledEnergy::Share& share = all.shares[sharer];
        share.time = saturating_sum(share.time, times[sharer]);
        if (!shared) continue;
        share.shared_time = saturating_sum(share.shared_time, times[sharer]);
        share.joules += joules * static_cast<double>(times[sharer]) / static_cast<double>(sum);
      }
      if (!shared) all.unshared += joules;
      all.to = bucket.last;
    } else {
      all.from = bucket.last;
    }
    before = &bucket;
    times = {};
  }
  return all.to > all.from ? std::optional(all) : std::nullopt;
}

}  // namespace cudabpf::analyze
