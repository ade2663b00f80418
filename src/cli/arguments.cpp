#include "cli/arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace cudabpf::cli {

bool is_value_of(const std::string& option, const std::string& word) {
  if (option == "--sample") {
    std::size_t number = word.find_first_not_of("0123456789");
    std::string unit = number == std::string::npos ? "" : word.substr(number);
    return number != 0 && !word.empty() && (unit.empty() || unit == "ms" || unit == "s");
  }
  return option == "--gpu" && (word == "graphs" || word == "nodes");
}

void join_optional_values(std::vector<std::string>& arguments) {
  auto end = std::find(arguments.begin(), arguments.end(), "--");
  bool marked = end != arguments.end();  // where the command begins
  for (auto at = arguments.begin();
       at != arguments.end() && *at != "--" && at + 1 != arguments.end(); ++at) {
    bool may_be_command = !marked && at != arguments.begin() && !at->starts_with("-");
    if (may_be_command) return;
    if (!is_value_of(*at, at[1])) continue;
    *at += "=" + at[1];
    arguments.erase(at + 1);
  }
}

namespace {
constexpr char KEPT_WHOLE = '\1';
}

void keep_brackets(std::vector<std::string>& arguments) {
  for (std::string& argument : arguments)
    if (argument.starts_with('[')) argument += KEPT_WHOLE;
}

void take_kept_brackets(CLI::App& app) {
  for (CLI::Option* option : app.get_options({}))
    option->transform([](std::string value) {
      if (value.starts_with('[') && value.ends_with(KEPT_WHOLE)) value.pop_back();
      return value;
    });
  for (CLI::App* sub : app.get_subcommands({})) take_kept_brackets(*sub);
}

std::vector<std::string> arguments_of(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "diff") {
    std::replace(arguments.begin(), arguments.end(), std::string("--"), std::string("--to"));
    if (std::count_if(arguments.begin(), arguments.end(), [](const std::string& argument) {
          return argument == "--to" || argument.starts_with("--to=");
        }) > 1)
      throw CLI::ValidationError("the two sides are separated once, by -- or --to");
  }
  join_optional_values(arguments);
  keep_brackets(arguments);
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

}  // namespace cudabpf::cli
