#include "analyze/derived/python_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

// "/usr/lib/python3.11/threading.py"
bool is_in_own_library(std::string_view file) {
  for (std::string_view folder : {"lib/python3.", "lib64/python3."})
    if (std::size_t at = file.find(folder); at != file.npos && (at == 0 || file[at - 1] == '/'))
      return true;
  return false;
}

std::string text_of(const nlohmann::json& frame) {
  std::string text = text_in(frame, "file");
  if (auto line = number_in<std::uint32_t>(frame, "line")) text += fmt::format(":{}", *line);
  return text + " " + text_in(frame, "function");
}

}  // namespace

bool is_of_library(std::string_view file) {
  return file.starts_with("<frozen ") || file.find("site-packages/") != file.npos ||
         file.find("dist-packages/") != file.npos || is_in_own_library(file);
}

const RangePlace& PythonPlaces::place_for(std::string_view line) {
  Name name = names_.add(line);
  auto [at, is_new] = by_line_.try_emplace(name.id, nullptr);
  if (!is_new) return *at->second;
  RangePlace& place = places_.emplace_back();
  at->second = &place;
  place.name = name;
  place.number = places_.size() - 1;
  place.names = 1;
  place.is_line = true;
  return place;
}

void PythonPlaces::follow(Line& line) {
  if (line.kind == LineKind::stack) return describe(line);
  if (!line.has(Field::stack)) return;
  auto known = by_number_.find(line.stack);
  if (known != by_number_.end()) line.python = known->second;
}

void PythonPlaces::describe(const Line& line) {
  auto json = parsed(line.text);
  const auto* frames = list_in(json, "frames");
  if (!frames || frames->empty() || all_.size() == MAX_STACKS) return;
  PythonPlace& place = all_.emplace_back();
  auto users = std::find_if(frames->begin(), frames->end(), [](const auto& frame) {
    return !is_of_library(text_in(frame, "file"));
  });
  place.place = &place_for(text_of(users == frames->end() ? frames->front() : *users));
  place.line = place.place->name;
  place.cut = json.value("cut", nlohmann::json(false)) == true;
  by_number_[line.stack] = &place;
  if (frames_ + frames->size() > MAX_FRAMES) return;
  frames_ += frames->size();
  for (const auto& frame : *frames) place.frames.push_back(names_.add(text_of(frame)));
}

}  // namespace cudabpf::analyze
