#include "util/system/rank_variables.hpp"

#include <charconv>

namespace cudabpf {

RankVariables rank_variables(const std::vector<std::string>& environment) {
  RankVariables found;
  for (std::string_view name : RANK_VARIABLES)
    for (std::string_view variable : environment) {
      if (!variable.starts_with(name) || !variable.substr(name.size()).starts_with('=')) continue;
      const char *begin = variable.data() + name.size() + 1,
                 *end = variable.data() + variable.size();
      std::uint32_t value = 0;
      auto [at, bad] = std::from_chars(begin, end, value);
      if (begin != end && bad == std::errc() && at == end) found.emplace_back(name, value);
      break;  // the first is the one that a program sees
    }
  return found;
}

}  // namespace cudabpf
