// cudabpf version: what --version prints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/help.hpp"

namespace cudabpf::cli {

void add_version(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("version", "Print the version");
  add_footer(*sub, {"cudabpf version"}, printing_statuses());
  sub->callback([&app, &action] {
    action = [&app] {
      fmt::print("{}\n", app.version());
      return 0;
    };
  });
}

}  // namespace cudabpf::cli
