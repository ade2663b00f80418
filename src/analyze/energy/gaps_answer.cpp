#include "analyze/energy/gaps_answer.hpp"

#include <nlohmann/json.hpp>

namespace cudabpf::analyze {

Json gaps_json(const Idle& idle, const GpusAtWork& measured, const SampledGpus& sampled,
               GapsBy by) {
  Json json = idle_json(idle);
  if (measured.any()) json["measured"] = gpus_at_work_json(measured);
  if (by == GapsBy::range) {
    auto any = [](std::uint64_t) { return true; };
    json["idle_by_range"] = idle_by_range_json(idle.idle_by_range().rows(idle.names(), any));
    if (measured.any())
      json["measured"]["idle_by_range"] =
          idle_by_range_json(measured.idle_by_range().rows(measured.names(), any));
  }
  if (Json gpus = sampled.json(); !gpus.empty()) json["sampled_gpus"] = gpus;
  return json;
}

}  // namespace cudabpf::analyze
