#include "analyze/energy/gaps_answer.hpp"

#include <nlohmann/json.hpp>

namespace cudabpf::analyze {

Json gaps_json(const Idle& idle, const GpusAtWork& measured, const SampledGpus& sampled,
               GapsBy by) {
  Json json = idle_json(idle);
  if (measured.any()) json["measured"] = gpus_at_work_json(measured);
  if (by != GapsBy::gap) {
    auto any = [](std::uint64_t) { return true; };
    std::string key = "idle_by_" + word_of(by);
    json[key] = idle_by_range_json(idle.idle_by_range().rows(idle.names(), any), by);
    if (measured.any())
      json["measured"][key] =
          idle_by_range_json(measured.idle_by_range().rows(measured.names(), any), by);
  }
  if (Json gpus = sampled.json(); !gpus.empty()) json["sampled_gpus"] = gpus;
  return json;
}

}  // namespace cudabpf::analyze
