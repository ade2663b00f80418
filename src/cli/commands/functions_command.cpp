// cudabpf functions: the table of what is traced.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/help.hpp"
#include "cli/shown.hpp"
#include "cudabpf/cuda_api.hpp"
#include "util/console/log.hpp"
#include "util/page/table.hpp"
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
  return {{"symbol", function.symbol},        {"name", function.name},
          {"library", api(function.api).key}, {"type", to_string(function.type)},
          {"op", to_string(function.op)},     {"profile", to_string(function.profile)},
          {"arguments", signature(function)}};
}

std::vector<const Function*> functions_of(const FunctionsFlags& flags) {
  auto profile = flags.profile.empty() ? Profile::full : *parse_profile(flags.profile);
  auto patterns = split_patterns(flags.match);
  std::vector<const Function*> functions;
  for (const Function& function : cuda_functions())
    if (function.profile <= profile &&
        (patterns.empty() || glob_match_any(patterns, function.symbol) ||
         glob_match_any(patterns, function.name)))
      functions.push_back(&function);
  return functions;
}

// Only a terminal is too narrow for anything.
Page wide_page() {
  constexpr unsigned WIDEST = 400;
  Terminal terminal = terminal_of(STDOUT_FILENO);
  if (!terminal.is_terminal && !std::getenv("COLUMNS")) terminal.width = WIDEST;
  return Page(terminal, WIDEST);
}

void add_functions(Page& page, const std::vector<const Function*>& functions) {
  constexpr std::size_t NAME_ROOM = 44;
  Table table("symbol",
              {{"type", 3, true}, {"op", 1, true}, {"profile", 2, true}, {"arguments", 0, true}},
              NAME_ROOM);
  for (const Function* function : functions)
    table.row(std::string(function->symbol),
              {std::string(to_string(function->type)), std::string(to_string(function->op)),
               std::string(to_string(function->profile)), signature(*function)});
  if (!table.empty()) table.add_to(page);
  page.line(count_of(functions.size(), "function", "functions"));
  page.say_left_out();
}

int print_functions(const FunctionsFlags& flags) {
  auto functions = functions_of(flags);
  if (flags.json) {
    for (const Function* function : functions) fmt::print("{}\n", as_json(*function).dump());
  } else {
    Page page = wide_page();
    add_functions(page, functions);
    show(page.take(), stdout);
  }
  if (functions.empty()) log::hint("a pattern is of the whole name, and case counts: '*Launch*'");
  return 0;
}

}  // namespace

void add_functions(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<FunctionsFlags>(
      app, action, "functions", "List the CUDA functions: what each is, and what is recorded of it",
      print_functions);
  one_of(sub.add_option("--profile", flags.profile,
                        "Show only functions that this profile traces [full]"),
         {"light", "default", "full"});
  sub.add_option("--match", flags.match, "Show only functions whose names match (case-sensitive)")
      ->type_name("PATTERN");
  sub.add_flag("--json", flags.json, "Print one JSON object per line");
  add_footer(sub,
             {"cudabpf functions --match '*Launch*'",
              "cudabpf functions --profile light   what that profile traces",
              "cudabpf functions --json | jq -r 'select(.type == \"sync\") | .name'"},
             printing_statuses());
}

}  // namespace cudabpf::cli
