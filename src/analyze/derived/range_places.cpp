#include "analyze/derived/range_places.hpp"

namespace cudabpf::analyze {

std::string path_text(const RangePlace& place, const Names& names) {
  std::string text(names.text(place.name));
  for (const RangePlace* around = place.around; around; around = around->around)
    text = std::string(names.text(around->name)) + " / " + text;
  return text;
}

void RangePlaces::follow(Line& line) {
  if (line.kind == LineKind::range_name) name(line);
  if (line.has(Field::range)) line.place = find(line.range);
}

// What is in one for which there is no room is in the one around it.
void RangePlaces::name(const Line& line) {
  const RangePlace* around = line.has(Field::in_range) ? find(line.in_range) : nullptr;
  Key key{around, line.label.id, line.domain.id};
  auto known = by_name_.find(key);
  const RangePlace* place = known == by_name_.end() ? nullptr : known->second;
  if (!place && all_.size() < MAX_PLACES) {
    place = &all_.emplace_back(around, line.label, line.domain, all_.size());
    by_name_.emplace(key, place);
  }
  left_out_ += !place;
  if (by_number_.size() >= MAX_NUMBERS) by_number_.clear();
  by_number_[line.range] = place ? place : around;
}

const RangePlace* RangePlaces::find(std::uint64_t number) const {
  auto known = by_number_.find(number);
  return known == by_number_.end() ? nullptr : known->second;
}

}  // namespace cudabpf::analyze
