// What a replay of the whole tape found, for people and for programs.
#pragma once

#include "replay/replayer.hpp"
#include "replay/tape.hpp"
#include "util/page/page.hpp"

namespace cudabpf::replay {

bundle::Json full_json(const FullReplay& replay, const Manifest& manifest, const Tape& tape);
// The time alone: full_model_timing.json.
bundle::Json timing_json(const FullReplay& replay, const Manifest& manifest, const Tape& tape);
// How memory compares, and what was not run.
void add_outcome(Page& page, const FullReplay& replay, const Manifest& manifest);
void add_full(Page& page, const FullReplay& replay, const Manifest& manifest, const Tape& tape);

}  // namespace cudabpf::replay
