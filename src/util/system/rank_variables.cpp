#include "util/system/rank_variables.hpp"

#include <charconv>

#include "util/system/procfs.hpp"

namespace cudabpf {

RankVariables rank_variables(const std::vector<std::string>& environment) {
  RankVariables found;
  for (std::string_view name : RANK_VARIABLES) {
    std::string text = value_in(environment, std::string(name));
    const char* end = text.data() + text.size();
    std::uint32_t value = 0;
    auto [at, bad] = std::from_chars(text.data(), end, value);
    if (!text.empty() && bad == std::errc() && at == end) found.emplace_back(name, value);
  }
  return found;
}

}  // namespace cudabpf
