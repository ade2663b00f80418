// What is said when the command line is wrong.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/request/invoker.hpp"
#include "cli/request/program_path.hpp"
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

bool are_pids(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789,") == std::string::npos;
}
bool is_no_option(const std::string& word) { return !word.empty() && word.front() != '-'; }
bool is_of_inside(const std::string& word) { return word == "--inside" || word == "--gpu"; }

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view PLAIN = "*?[]\"' ";
  return word.find_first_of(PLAIN) == std::string::npos ? word : "'" + word + "'";
}

// What a subcommand takes by an option, or not at all, though it is given as if it did.
std::string meant_by(const std::string& subcommand, const std::string& argument) {
  constexpr struct {
    std::string_view subcommand;
    bool (*is)(const std::string&);
    std::string_view option;
  } TAKEN_BY_OPTION[] = {{"attach", are_pids, "--pid"},
                         {"attach", is_no_option, "--name"},
                         {"functions", is_no_option, "--match"}};
  for (const auto& [name, is, option] : TAKEN_BY_OPTION)
    if (name == subcommand && is(argument))
      return fmt::format("did you mean `cudabpf {} {} {}`?", name, option, shell_quoted(argument));
  if (subcommand == "attach" && is_of_inside(argument))
    return fmt::format(
        "recording inside a process begins where it begins: `cudabpf run {} -- CMD` starts it",
        argument);
  return {};
}

// What a word at a subcommand's place may be: a command to trace, or a trace to read.
std::string meant_without_subcommand(const std::string& argument) {
  if (argument.starts_with("-")) return {};
  std::string program = find_program(argument, own_environment());
  if (!program.empty() && ::access(program.c_str(), X_OK) == 0)
    return fmt::format("`cudabpf run -- {}` traces a command", shell_quoted(argument));
  if (::access(argument.c_str(), R_OK) == 0)
    return fmt::format("`cudabpf summary {}` reads a trace", shell_quoted(argument));
  return {};
}

std::string hint_for(const CLI::App& app, const std::string& argument) {
  std::string name = argument.substr(0, argument.find('='));
  auto given = app.get_subcommands();
  if (!given.empty() && given.front()->get_option_no_throw(name))
    return "it goes after the subcommand: `cudabpf " + given.front()->get_name() + " " + argument +
           "`";
  if (std::string meant = nearest(name, known_instead(app, name)); !meant.empty())
    return "did you mean " + meant + "?";
  return given.empty() ? meant_without_subcommand(argument)
                       : meant_by(given.front()->get_name(), argument);
}

// "cudabpf run -- CMD": with all that must be given.
std::string usage_of(const CLI::App& sub) {
  std::string usage = "cudabpf " + sub.get_name();
  for (const CLI::Option* option : sub.get_options())
    if (option->get_positional() && option->get_required())
      usage += (sub.get_name() == "run" ? " -- " : " ") + option->get_type_name();
  return usage;
}

// The parser's words, where there are better ones.
std::string in_plain_words(const CLI::App& app, const CLI::Error& error) {
  std::string what = error.what();
  auto given = app.get_subcommands();
  constexpr std::string_view REQUIRED = " is required", CONVERT = "Could not convert: ";
  if (!given.empty() && what.ends_with(REQUIRED)) {
    std::string name = what.substr(0, what.size() - REQUIRED.size());
    const CLI::Option* option = given.front()->get_option_no_throw(name);
    if (option && option->get_positional())
      return fmt::format("missing {}: usage is `{}`", option->get_type_name(),
                         usage_of(*given.front()));
  }
  std::size_t value = what.find(" = ");
  if (what.starts_with(CONVERT) && value != std::string::npos)
    return fmt::format("{}: {} is not a number",
                       what.substr(CONVERT.size(), value - CONVERT.size()), what.substr(value + 3));
  return what;
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
  std::string what = in_plain_words(app, error), hint;
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    std::string argument = unknown_argument(app);
    what = "unknown argument " + argument;
    hint = hint_for(app, argument);
  }
  auto given = app.get_subcommands();
  if (hint.empty())
    hint = given.empty() ? "see `cudabpf --help`, or --help after a subcommand"
                         : "see `cudabpf " + given.front()->get_name() + " --help`";
  return "cudabpf: error: " + printable(what) + "\ncudabpf: hint: " + printable(hint) + "\n";
}

}  // namespace cudabpf::cli
