#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace cudabpf::cli {

std::vector<std::string> arguments_of(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "diff") {
    std::replace(arguments.begin(), arguments.end(), std::string("--"), std::string("--to"));
    if (std::count_if(arguments.begin(), arguments.end(), [](const std::string& argument) {
          return argument == "--to" || argument.starts_with("--to=");
        }) > 1)
      throw CLI::ValidationError("the two sides are separated once, by -- or --to");
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

}  // namespace cudabpf::cli
