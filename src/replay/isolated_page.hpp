// What launches by themselves take, for people and for programs.
#pragma once

#include "replay/replayer.hpp"
#include "replay/tape.hpp"
#include "util/page/page.hpp"

namespace cudabpf::replay {

bundle::Json isolated_json(const IsolatedReplay& replay, const Manifest& manifest,
                           const Tape& tape);
void add_isolated(Page& page, const IsolatedReplay& replay, const Manifest& manifest,
                  const Tape& tape);

}  // namespace cudabpf::replay
