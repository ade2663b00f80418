#include "util/system/rank_variables.hpp"

#include "util/whole_number.hpp"

namespace cudabpf {

RankVariables rank_variables(const std::vector<std::string>& environment) {
  RankVariables found;
  for (std::string_view name : RANK_VARIABLES)
    for (std::string_view variable : environment) {
      if (!variable.starts_with(name) || !variable.substr(name.size()).starts_with('=')) continue;
      auto value = whole_number<std::uint32_t>(variable.substr(name.size() + 1));
      if (value) found.emplace_back(name, *value);
      break;  // the first is the one that a program sees
    }
  return found;
}

}  // namespace cudabpf
