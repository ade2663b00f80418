#include "cli/flags/one_of.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "util/text/nearest.hpp"

namespace cudabpf::cli {

CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  auto refusal = [words](const std::string& given) {
    if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
    std::string meant = nearest(given, words);
    return fmt::format("{} is not one of {}{}", given, fmt::join(words, ", "),
                       meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
  };
  return option->type_name(fmt::format("{}", fmt::join(words, "|")))
      ->check(CLI::Validator(refusal, ""));
}

}  // namespace cudabpf::cli
