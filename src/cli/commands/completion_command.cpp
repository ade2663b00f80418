// cudabpf completion: a shell's script, which asks `cudabpf __complete` what to offer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/help.hpp"

namespace cudabpf::cli {

namespace {

constexpr char BASH[] =
#include "bash_completion.inc"
    ;
constexpr char ZSH[] =
#include "zsh_completion.inc"
    ;
constexpr char FISH[] =
#include "fish_completion.inc"
    ;
constexpr std::pair<const char*, const char*> SHELLS[] = {
    {"bash", BASH}, {"zsh", ZSH}, {"fish", FISH}};

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
  sub->callback([shell, &action] {
    action = [shell] {
      for (const auto& [name, script] : SHELLS)
        if (*shell == name) fmt::print("{}", script);
      return 0;
    };
  });
}

}  // namespace cudabpf::cli
