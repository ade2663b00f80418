// What `gaps` answers: when GPUs were idle, as concluded, as measured and as sampled.
#pragma once

#include "analyze/energy/sampled_gpus.hpp"
#include "analyze/gaps/gpus_at_work.hpp"
#include "analyze/gaps/idle.hpp"

namespace cudabpf::analyze {

Json gaps_json(const Idle& idle, const GpusAtWork& measured, const SampledGpus& sampled,
               GapsBy by = GapsBy::gap);

}  // namespace cudabpf::analyze
