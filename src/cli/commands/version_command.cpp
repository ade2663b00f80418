// cudabpf version: what --version prints.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/help.hpp"

namespace cudabpf::cli {

void add_version(CLI::App& app, Action& action) {
  CLI::App& sub = add_command(app, action, "version", "Print the version", [&app] {
    fmt::print("{}\n", app.version());
    return 0;
  });
  add_footer(sub, {"cudabpf version"}, printing_statuses());
}

}  // namespace cudabpf::cli
