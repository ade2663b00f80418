#include "analyze/export/folded_stacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "util/saturating.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::analyze {

namespace {

// "step (train.py:12)", of "/home/me/train.py:12 step".
std::string short_frame(std::string_view frame) {
  std::size_t space = frame.rfind(' ');
  std::string_view file = frame.substr(0, space);
  std::string text =
      fmt::format("{} ({})", frame.substr(space + 1), file.substr(file.rfind('/') + 1));
  std::replace(text.begin(), text.end(), ';', ',');  // which is between frames
  return printable(text);
}

}  // namespace

std::string FoldedStacks::text_of(const PythonPlace* place) const {
  if (!place) return "(no line)";
  if (place->frames.empty()) return short_frame(names_.text(place->line));
  std::string text = place->cut ? "…" : "";
  for (auto frame = place->frames.rbegin(); frame != place->frames.rend(); frame++) {
    if (!text.empty()) text += ';';
    text += short_frame(names_.text(*frame));
  }
  return text;
}

void FoldedStacks::finish(const TraceFacts& facts) {
  weights_.finish(facts);
  std::map<std::string, std::uint64_t> sums;  // equal texts are one line
  for (auto& [place, what, weight] : weights_.of(measure_)) {
    std::replace(what.begin(), what.end(), ';', ',');
    std::uint64_t& sum = sums[text_of(place) + ";" + printable(what)];
    sum = saturating_sum(sum, weight);
  }
  for (const auto& [text, weight] : sums) out_.text(fmt::format("{} {}\n", text, weight));
}

}  // namespace cudabpf::analyze
