#include "util/text/nearest.hpp"

#include <algorithm>

namespace cudabpf {

namespace {

// How many letters are missing, superfluous, wrong, or swapped with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); i++) {
    before_last = std::move(last);
    last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); j++) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, const std::vector<std::string>& known) {
  constexpr std::size_t LONGEST = 64, SURE = 3;
  if (typed.size() < SURE || typed.size() > LONGEST) return {};
  std::string best;
  std::size_t least = std::min<std::size_t>(2, typed.size() / 3) + 1;
  for (const std::string& name : known)
    if (std::size_t apart = distance(typed, name); apart < least) {
      least = apart;
      best = name;
    }
  if (!best.empty()) return best;
  auto begins = [&](const std::string& name) { return name.starts_with(typed); };
  if (std::count_if(known.begin(), known.end(), begins) != 1) return {};
  return *std::find_if(known.begin(), known.end(), begins);
}

}  // namespace cudabpf
