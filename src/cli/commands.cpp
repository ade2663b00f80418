#include "cli/commands.hpp"

#include <CLI/CLI.hpp>
#include <utility>

namespace cudabpf::cli {

CLI::App& add_command(CLI::App& app, Action& action, const char* name, const std::string& what,
                      Action does) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->callback([does = std::move(does), &action] { action = does; });
  return *sub;
}

}  // namespace cudabpf::cli
