// What is in a capture folder, and whether it can be run here: `replay --list`.
#pragma once

#include <functional>
#include <iterator>
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
// A step that is a launch.
bundle::Json occurrence_json(const Step& step);
// Where the capture comes from, as a heading.
std::string origin_of(const Manifest& manifest);
// "2x1x1".
std::string dim_text(const bundle::Dim& dim);

void add_section(Page& page, std::string_view name);
// A section with a paragraph for each thing; none if there are no things.
template <typename Things, typename TextOf = std::identity>
void add_paragraphs(Page& page, std::string_view name, const Things& things, TextOf text_of = {}) {
  if (!std::empty(things)) add_section(page, name);
  for (const auto& thing : things) page.paragraph(std::invoke(text_of, thing), 2);
}

}  // namespace cudabpf::replay
