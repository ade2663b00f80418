#include "analyze/derived/range_places.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace cudabpf::analyze {

std::string path_text(const RangePlace& place, const Names& names) {
  std::vector<std::string_view> path;
  for (const RangePlace* one = &place; one; one = one->around)
    path.push_back(names.text(one->name));
  std::reverse(path.begin(), path.end());
  return fmt::format("{}", fmt::join(path, " / "));
}

std::string without_digits(std::string_view name) {
  std::string folded;
  for (char c : name) {
    bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      folded += c;
    else if (!folded.ends_with('#'))
      folded += '#';
  }
  return folded;
}

void RangePlaces::follow(Line& line) {
  if (line.kind == LineKind::range_name) name(line);
  if (line.has(Field::range)) line.place = find(line.range);
}

// What is in one for which there is no room is in the one around it.
void RangePlaces::name(const Line& line) {
  const RangePlace* around = line.has(Field::in_range) ? find(line.in_range) : nullptr;
  RangePlace* place = place_for(around, line.label, line.domain);
  if (place && (place->name != line.label ? !by_number_.contains(line.range) : !place->names))
    place->names++;
  if (by_number_.size() >= MAX_NUMBERS) by_number_.clear();
  by_number_[line.range] = place ? place : around;
}

RangePlace* RangePlaces::place_for(const RangePlace* around, Name name, Name domain) {
  if (around && around->depth + 1 >= MAX_DEPTH) return nullptr;
  auto known = by_name_.find({around, name.id, domain.id});
  if (known != by_name_.end()) return known->second;
  std::string_view text = names_.text(name);
  bool has_digits =
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (has_digits) {
    Name folded = names_.add(without_digits(text));
    if (std::size_t& alike = alike_[{around, folded.id, domain.id}]; alike < MAX_ALIKE)
      alike++;
    else
      return place_for(around, folded, domain);
  }
  if (all_.size() == MAX_PLACES) return nullptr;
  RangePlace& place = all_.emplace_back();
  place.around = around;
  place.name = name;
  place.domain = domain;
  place.number = all_.size() - 1;
  place.depth = around ? around->depth + 1 : 0;
  by_name_.emplace(Key{around, name.id, domain.id}, &place);
  return &place;
}

const RangePlace* RangePlaces::find(std::uint64_t number) const {
  auto known = by_number_.find(number);
  return known == by_number_.end() ? nullptr : known->second;
}

}  // namespace cudabpf::analyze
