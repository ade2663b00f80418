#include "analyze/export/folded_stacks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/derived/python_places.hpp"
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

FoldedStacks::Weight FoldedStacks::weight(std::string_view name) {
  if (name == "gpu") return Weight::gpu;
  return name == "bytes" ? Weight::bytes : Weight::host;
}

void FoldedStacks::line(const Line& line) {
  kernels_.line(line);
  bool is_call = line.kind == LineKind::call;
  switch (weight_) {
    case Weight::host:
      if (is_call && !line.has(Field::parent) && !line.has(Field::within))
        add(line, line.name, line.duration);
      return;
    case Weight::bytes:
      if (is_call && gives_work(line.work)) add(line, line.name, line.size);
      return;
    case Weight::gpu:
      if (line.kind == LineKind::gpu_operation)
        add(line, line.kernel ? line.kernel : line.op, line.duration);
      return;
  }
}

void FoldedStacks::add(const Line& line, Name what, std::uint64_t weight) {
  if (!weight) return;
  std::uint64_t& sum = weights_[{line.python, what.id}];
  sum = saturating_sum(sum, weight);
}

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

void FoldedStacks::finish(const TraceFacts&) {
  kernels_.settle();
  std::map<std::string, std::uint64_t> sums;  // equal texts are one line
  for (const auto& [key, weight] : weights_) {
    std::string kernel = weight_ == Weight::gpu ? kernels_.of({key.what}) : std::string();
    std::string what = kernel.empty() ? std::string(names_.text({key.what})) : std::move(kernel);
    std::replace(what.begin(), what.end(), ';', ',');
    std::uint64_t& sum = sums[text_of(key.place) + ";" + printable(what)];
    sum = saturating_sum(sum, weight);
  }
  for (const auto& [text, weight] : sums) out_.text(fmt::format("{} {}\n", text, weight));
}

}  // namespace cudabpf::analyze
