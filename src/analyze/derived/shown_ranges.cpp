#include "analyze/derived/shown_ranges.hpp"

#include <map>
#include <tuple>

namespace cudabpf::analyze {

void ShownRanges::add(const RangePlace* place) {
  // If one is shown, so are those around it.
  for (; place; place = place->around) {
    if (places_.size() <= place->number) places_.resize(place->number + 1);
    if (places_[place->number]) return;
    places_[place->number] = place;
  }
}

// All of one depth are looked at before those inside them.
void ShownRanges::settle() {
  std::vector<std::vector<const RangePlace*>> by_depth;
  for (const RangePlace* place : places_) {
    if (!place) continue;
    if (by_depth.size() <= place->depth) by_depth.resize(place->depth + 1);
    by_depth[place->depth].push_back(place);
  }
  shown_as_.assign(places_.size(), 0);
  using Named = std::tuple<std::size_t, std::string, std::string>;
  for (const auto& places : by_depth) {
    auto key_of = [&](const RangePlace& place, bool folded) {
      std::string_view name = names_.text(place.name);
      return Named{place.around ? shown_as_[place.around->number] : 0,
                   folded ? without_digits(name) : std::string(name),
                   std::string(names_.text(place.domain))};
    };
    std::map<Named, std::map<std::string, int>> alike;
    for (const RangePlace* place : places)
      alike[key_of(*place, true)][std::string(names_.text(place->name))]++;
    std::map<Named, std::size_t> known;
    for (const RangePlace* place : places) {
      bool folded = !place->is_line && alike[key_of(*place, true)].size() > MAX_ALIKE;
      Named key = key_of(*place, folded);
      auto [at, is_new] = known.try_emplace(key, rows_.size() + 1);
      if (is_new) {
        Row& row = rows_.emplace_back();
        std::tie(row.around, row.name, row.domain) = key;
      }
      shown_as_[place->number] = at->second;
      Row& row = rows_[at->second - 1];
      row.names = folded ? row.names + place->names : 1;
    }
  }
}

std::string ShownRanges::text(const RangePlace* place) const {
  if (!place) return "(no range)";
  std::string path;
  for (std::size_t row = shown_as_[place->number]; row; row = rows_[row - 1].around)
    path.insert(0, path.empty() ? rows_[row - 1].name : rows_[row - 1].name + " / ");
  return path;
}

}  // namespace cudabpf::analyze
