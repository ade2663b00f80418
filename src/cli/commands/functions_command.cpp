// cudabpf functions: the table of what is traced.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/one_of.hpp"
#include "cudabpf/cuda_api.hpp"
#include "util/console/log.hpp"
#include "util/text/glob.hpp"

namespace cudabpf::cli {

namespace {

struct FunctionsFlags {
  std::string profile;
  std::string match;
  bool json = false;
};

std::string signature(const Function& function) {
  std::string text;
  for (const Argument& argument : function.arguments) {
    if (argument.role == Role::hidden) continue;
    if (!text.empty()) text += ", ";
    text +=
        fmt::format("{}{}: {}", argument.out ? "→" : "", argument.name, to_string(argument.role));
  }
  return text;
}

nlohmann::ordered_json as_json(const Function& function) {
  return {{"symbol", function.symbol},
          {"name", function.name},
          {"type", to_string(function.type)},
          {"op", to_string(function.op)},
          {"profile", to_string(function.profile)},
          {"arguments", signature(function)}};
}

int print_functions(const FunctionsFlags& flags) {
  auto profile = flags.profile.empty() ? Profile::full : *parse_profile(flags.profile);
  auto patterns = split_patterns(flags.match);
  std::size_t count = 0;
  if (!flags.json)
    fmt::print("{:<44} {:<10} {:<16} {:<8} {}\n", "SYMBOL", "TYPE", "OP", "PROFILE", "ARGUMENTS");
  for (const Function& function : cuda_functions()) {
    if (function.profile > profile) continue;
    if (!patterns.empty() && !glob_match_any(patterns, function.symbol) &&
        !glob_match_any(patterns, function.name))
      continue;
    count++;
    if (flags.json)
      fmt::print("{}\n", as_json(function).dump());
    else
      fmt::print("{:<44} {:<10} {:<16} {:<8} {}\n", function.symbol, to_string(function.type),
                 to_string(function.op), to_string(function.profile), signature(function));
  }
  if (!flags.json) fmt::print("{} functions\n", count);
  if (count == 0) log::hint("a pattern is of the whole name, and case counts: '*Launch*'");
  return 0;
}

}  // namespace

void add_functions(CLI::App& app, Action& action) {
  auto flags = std::make_shared<FunctionsFlags>();
  CLI::App* sub = app.add_subcommand(
      "functions", "List the CUDA functions: what each is, and what is recorded of it");
  one_of(sub->add_option("--profile", flags->profile,
                         "Show only functions that this profile traces [full]"),
         {"light", "default", "full"});
  sub->add_option("--match", flags->match, "Show only functions whose names match (case-sensitive)")
      ->type_name("PATTERN");
  sub->add_flag("--json", flags->json, "Print one JSON object per line");
  sub->callback([flags, &action] { action = [flags] { return print_functions(*flags); }; });
}

}  // namespace cudabpf::cli
