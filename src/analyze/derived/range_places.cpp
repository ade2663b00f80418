#include "analyze/derived/range_places.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "util/text/glob.hpp"

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

namespace {

// "a/b", of "a / b": paths are written in both ways.
std::string without_blanks_around_slashes(std::string_view path) {
  std::string text;
  for (char c : path) {
    if (c == '/')
      while (text.ends_with(' ')) text.pop_back();
    if (c != ' ' || !text.ends_with('/')) text += c;
  }
  return text;
}

// What is in no range counts in none. Other lines are of the whole program: processes, samples.
bool may_be_in_range(LineKind kind) {
  return is_of_thread(kind) || is_of_gpu(kind) || kind == LineKind::range;
}

}  // namespace

void RangePlaces::want(std::string_view pattern) {
  wanted_.pattern = without_blanks_around_slashes(pattern);
}

void RangePlaces::follow(Line& line) {
  if (line.kind == LineKind::range_name) name(line);
  const Known* known = line.has(Field::range) ? find(line.range) : nullptr;
  if (known) line.place = known->place;
  if (!wanted_.pattern.empty() && may_be_in_range(line.kind)) line.wanted = known && known->wanted;
}

// What is in one for which there is no room is in the one around it.
void RangePlaces::name(const Line& line) {
  const Known* outer = line.has(Field::in_range) ? find(line.in_range) : nullptr;
  const RangePlace* around = outer ? outer->place : nullptr;
  bool wanted = (outer && outer->wanted) || fits(line);
  RangePlace* place = place_for(around, line.label, line.domain);
  if (place && (place->name != line.label ? !by_number_.contains(line.range) : !place->names))
    place->names++;
  if (by_number_.size() >= MAX_NUMBERS) by_number_.clear();
  by_number_[line.range] = {place ? place : around, line.label, outer ? line.in_range : 0, wanted};
}

// Whether it is wanted by its own name, or its path.
bool RangePlaces::fits(const Line& line) {
  constexpr std::size_t LISTED = 6;
  if (wanted_.pattern.empty()) return true;
  std::string name(names_.text(line.label));
  bool by_path = wanted_.pattern.find('/') != std::string::npos;
  if (glob_match(wanted_.pattern, by_path ? path_of(line) : name)) return wanted_.found = true;
  std::string alike = without_digits(name);
  std::replace(alike.begin(), alike.end(), '#', '*');
  auto& others = wanted_.others;
  if (others.size() < LISTED && std::find(others.begin(), others.end(), alike) == others.end())
    others.push_back(alike);
  return false;
}

// "generate/decode"; of names that are too deep, without those around.
std::string RangePlaces::path_of(const Line& line) const {
  std::string path(names_.text(line.label));
  const Known* around = line.has(Field::in_range) ? find(line.in_range) : nullptr;
  for (std::size_t depth = 1; around && depth < MAX_DEPTH; depth++) {
    path.insert(0, "/").insert(0, names_.text(around->name));
    around = around->around ? find(around->around) : nullptr;
  }
  return without_blanks_around_slashes(path);
}

RangePlace* RangePlaces::place_for(const RangePlace* around, Name name, Name domain) {
  if (around && around->depth + 1 >= MAX_DEPTH) return nullptr;
  auto known = by_name_.find({around, name.id, domain.id});
  if (known != by_name_.end()) return known->second;
  std::string_view text = names_.text(name);
  if (std::string digitless = without_digits(text); digitless != text) {
    Name folded = names_.add(digitless);
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

const RangePlaces::Known* RangePlaces::find(std::uint64_t number) const {
  auto known = by_number_.find(number);
  return known == by_number_.end() ? nullptr : &known->second;
}

}  // namespace cudabpf::analyze
