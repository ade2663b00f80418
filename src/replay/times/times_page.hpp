// A replay's times beside the program's, for people and for programs: `replay --compare`.
#pragma once

#include "replay/times/times_compared.hpp"
#include "util/page/page.hpp"

namespace cudabpf::replay {

bundle::Json times_json(const TimesCompared& times, const Manifest& manifest, const Tape& tape);
void add_times(Page& page, const TimesCompared& times, const Manifest& manifest, const Tape& tape);

}  // namespace cudabpf::replay
