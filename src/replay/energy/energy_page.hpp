// The answer of `replay --energy`, as JSON and as text.
#pragma once

#include "bundle/fields.hpp"
#include "replay/energy/predicted_energy.hpp"
#include "util/page/page.hpp"

namespace cudabpf::replay {

bundle::Json energy_json(const PredictedEnergy& energy, const Manifest& manifest, const Tape& tape);
void add_energy(Page& page, const PredictedEnergy& energy, const Manifest& manifest,
                const Tape& tape);

}  // namespace cudabpf::replay
