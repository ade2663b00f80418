// What --with found, for people and for programs.
#pragma once

#include "replay/trial/trial.hpp"
#include "util/page/page.hpp"

namespace cudabpf::replay {

bundle::Json trial_json(const Trial& trial, const TrialOptions& options, const Manifest& manifest,
                        const Tape& tape);
void add_trial(Page& page, const Trial& trial, const TrialOptions& options,
               const Manifest& manifest, const Tape& tape);

}  // namespace cudabpf::replay
