// cudabpf completion: shell completion, made from the parser itself, so that it is never outdated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.hpp"
#include "cli/commands/command_line.hpp"
#include "cli/help.hpp"
#include "cli/one_of.hpp"

namespace cudabpf::cli {

namespace {

using Script = std::string (*)(const CommandLine&);
constexpr std::pair<const char*, Script> SHELLS[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>("bash");
  CLI::App* sub = app.add_subcommand("completion", "Print a shell's completion script for cudabpf");
  std::vector<std::string> shells;
  for (const auto& [name, script] : SHELLS) shells.emplace_back(name);
  one_of(sub->add_option("shell", *shell, "The shell"), shells);
  add_footer(*sub,
             {"source <(cudabpf completion bash)",
              "cudabpf completion zsh > _cudabpf   for a folder in zsh's $fpath",
              "cudabpf completion fish > cudabpf.fish   for ~/.config/fish/completions"},
             printing_statuses());
  sub->callback([shell, &app, &action] {
    action = [shell, &app] {
      for (const auto& [name, script] : SHELLS)
        if (*shell == name) fmt::print("{}", script(command_line_of(app)));
      return 0;
    };
  });
}

}  // namespace cudabpf::cli
