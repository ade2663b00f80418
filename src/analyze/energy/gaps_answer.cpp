#include "analyze/energy/gaps_answer.hpp"

#include <nlohmann/json.hpp>

namespace cudabpf::analyze {

Json gaps_json(const Idle& idle, const GpusAtWork& measured, const SampledGpus& sampled) {
  Json json = idle_json(idle);
  if (measured.any()) json["measured"] = gpus_at_work_json(measured);
  if (Json gpus = sampled.json(); !gpus.empty()) json["sampled_gpus"] = gpus;
  return json;
}

}  // namespace cudabpf::analyze
