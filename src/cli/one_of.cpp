#include "cli/one_of.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

namespace cudabpf::cli {

CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  return option->type_name(fmt::format("{}", fmt::join(words, "|")))
      ->check(CLI::IsMember(words).description(""));
}

}  // namespace cudabpf::cli
