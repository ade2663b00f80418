// What is in a capture folder, and whether it can be run here: `replay --list`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "replay/launches.hpp"
#include "replay/messages.hpp"
#include "replay/tape.hpp"
#include "util/page/page.hpp"

namespace cudabpf::replay {

// The machine's GPU, or why it is not known.
struct Here {
  std::optional<Gpu> gpu;
  std::string why;
};

bundle::Json list_json(const Manifest& manifest, const Tape& tape, const Here& here);
void add_list(Page& page, const Manifest& manifest, const Tape& tape, const Here& here);

bundle::Json launch_json(const DistinctLaunch& launch, const Manifest& manifest);
// Where the capture comes from, as a heading.
std::string origin_of(const Manifest& manifest);
void add_section(Page& page, std::string_view name);
// "2x1x1".
std::string dim_text(const bundle::Dim& dim);

}  // namespace cudabpf::replay
