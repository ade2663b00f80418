#include "cli/commands/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <stdexcept>

#include "analyze/diff/measure.hpp"
#include "collect/bpf/features.hpp"

namespace cudabpf::cli {

namespace {

// By the names that --help has for them. Words in small letters, as in light|default|full, are
// themselves what can be given.
const std::map<std::string, Kind, std::less<>> KINDS = {
    {"TRACE", Kind::trace},     {"A B", Kind::trace},       {"B", Kind::trace},
    {"FILE", Kind::file},       {"PATH", Kind::file},       {"PID", Kind::process},
    {"PROGRAM", Kind::program}, {"USER", Kind::user},       {"ID|CGROUP", Kind::cgroup},
    {"CMD", Kind::command},     {"FEATURE", Kind::word},    {"SUBCOMMAND", Kind::word},
    {"PATTERN", Kind::unknown}, {"N", Kind::unknown},       {"SIZE", Kind::unknown},
    {"TIME", Kind::unknown},    {"PHASE", Kind::unknown},   {"CONDITION", Kind::word},
    {"DIR", Kind::file},        {"ADDRESS", Kind::unknown}, {"HOST", Kind::unknown},
    {"TID", Kind::unknown},
};

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

Word argument_of(const CLI::Option& option) {
  Word argument;
  argument.type = option.get_type_name();
  argument.several = option.get_items_expected_max() > 1 && option.get_allow_extra_args();
  argument.separated = option.get_delimiter() != '\0';
  if (std::none_of(argument.type.begin(), argument.type.end(), is_capital)) {
    argument.kind = Kind::word;
    argument.words = CLI::detail::split(argument.type, '|');
    return argument;
  }
  auto kind = KINDS.find(argument.type);
  if (kind == KINDS.end())
    throw std::logic_error("completion does not know what " + argument.type + " is");
  argument.kind = kind->second;
  if (argument.type == "FEATURE") argument.words = feature_names();
  if (argument.type == "CONDITION")
    argument.words = analyze::measure_names();  // it begins with one
  return argument;
}

// What comes first, on one line: up to the first full stop, semicolon or colon outside of brackets.
std::string in_short(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    bool ends = text[i] == '.' || text[i] == ';' || text[i] == ':';
    if (ends && depth == 0 && (i + 1 == text.size() || text[i + 1] == ' '))
      return text.substr(0, i);
  }
  return text;
}

Flag flag_of(const CLI::Option& option) {
  Flag flag{{}, in_short(option.get_description()), {}, option.get_items_expected_max() > 1};
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  if (option.get_items_expected_max() > 0) flag.value = argument_of(option);
  return flag;
}

Subcommand subcommand_of(const CLI::App& app, std::string name) {
  Subcommand subcommand{std::move(name), in_short(app.get_description()), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional())
      subcommand.argument = argument_of(*option);
    else
      subcommand.flags.push_back(flag_of(*option));
  }
  if (subcommand.argument && subcommand.argument->type == "SUBCOMMAND")
    for (const CLI::App* other : app.get_parent()->get_subcommands({}))
      subcommand.argument->words.push_back(other->get_name());
  // The processes of a trace need not run now, and may have run elsewhere.
  if (subcommand.argument && subcommand.argument->kind == Kind::trace)
    for (Flag& flag : subcommand.flags)
      if (flag.value && flag.value->kind == Kind::process) flag.value->kind = Kind::unknown;
  return subcommand;
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::unknown:
      return "unknown";
    case Kind::word:
      return "word";
    case Kind::file:
      return "file";
    case Kind::trace:
      return "trace";
    case Kind::process:
      return "process";
    case Kind::program:
      return "program";
    case Kind::user:
      return "user";
    case Kind::cgroup:
      return "cgroup";
    case Kind::command:
      return "command";
  }
  return "";
}

CommandLine command_line_of(const CLI::App& app) {
  CommandLine line{subcommand_of(app, {}), {}};
  for (const CLI::App* sub : app.get_subcommands({}))
    line.subcommands.push_back(subcommand_of(*sub, sub->get_name()));
  return line;
}

}  // namespace cudabpf::cli
