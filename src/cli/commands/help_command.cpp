// cudabpf help: what --help prints, of the whole program or of a subcommand.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/shown.hpp"
#include "util/exit_codes.hpp"
#include "util/text/nearest.hpp"

namespace cudabpf::cli {

namespace {

Result<int> print_help(const CLI::App& app, const std::string& name) {
  const CLI::App* asked = name.empty() ? &app : nullptr;
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands({})) {
    known.push_back(sub->get_name());
    if (sub->get_name() == name) asked = sub;
  }
  if (asked) {
    show(help_of(*asked), stdout);
    return 0;
  }
  std::string meant = nearest(name, known);
  return Error{"there is no subcommand " + name,
               meant.empty() ? "`cudabpf help` lists them" : "did you mean " + meant + "?",
               exit_code::USAGE};
}

}  // namespace

void add_help(CLI::App& app, Action& action) {
  auto [sub, name] =
      add_command<std::string>(app, action, "help", "Print this help, or a subcommand's",
                               [&app](const std::string& given) { return print_help(app, given); });
  sub.add_option("subcommand", name, "The subcommand")->type_name("SUBCOMMAND");
  add_footer(sub, {"cudabpf help summary"}, printing_statuses());
}

}  // namespace cudabpf::cli
