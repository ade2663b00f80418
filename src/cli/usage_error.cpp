// What is said when the command line is wrong.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "util/text/nearest.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::cli {

namespace {

// The first argument that was not recognised; the parser's own text would list them backwards.
std::string unknown_argument(const CLI::App& app) {
  for (const std::string& argument : app.remaining(true))
    if (argument != "--") return argument;
  return {};
}

// What could be meant instead, for the subcommand that was given.
std::vector<std::string> known_instead(const CLI::App& app, const std::string& argument) {
  std::vector<std::string> known;
  auto given = app.get_subcommands();
  if (argument.starts_with("-")) {
    for (const CLI::Option* option : (given.empty() ? app : *given.front()).get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  } else if (given.empty()) {
    for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
  }
  return known;
}

std::string hint_for(const CLI::App& app, const std::string& argument) {
  std::string name = argument.substr(0, argument.find('='));
  auto given = app.get_subcommands();
  if (!given.empty() && given.front()->get_option_no_throw(name))
    return "it goes after the subcommand: `cudabpf " + given.front()->get_name() + " " + argument +
           "`";
  if (std::string meant = nearest(name, known_instead(app, name)); !meant.empty())
    return "did you mean " + meant + "?";
  bool is_file = app.get_subcommands().empty() && ::access(argument.c_str(), R_OK) == 0;
  if (is_file) return "`cudabpf summary " + argument + "` reads a trace";
  return {};
}

}  // namespace

void refuse_misplaced(const CLI::App& app) {
  auto given = app.get_subcommands();
  if (given.empty()) return;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->count()) continue;
    std::string name = "--" + option->get_lnames().front();
    std::string sub = given.front()->get_name();
    bool known = given.front()->get_option_no_throw(name) != nullptr;
    throw CLI::ValidationError(
        fmt::format("{} stands before `{}`, {}", name, sub,
                    known ? "where it has no effect: put it after" : "which does not have it"));
  }
}

std::string usage_error(const CLI::App& app, const CLI::Error& error) {
  std::string what = error.what(), hint;
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    std::string argument = unknown_argument(app);
    what = "unknown argument " + argument;
    hint = hint_for(app, argument);
  }
  auto given = app.get_subcommands();
  if (hint.empty())
    hint = given.empty() ? "`cudabpf --help`, or --help after a subcommand, says what there is"
                         : "`cudabpf " + given.front()->get_name() + " --help` says what there is";
  return "cudabpf: error: " + printable(what) + "\ncudabpf: error:   " + printable(hint) + "\n";
}

}  // namespace cudabpf::cli
