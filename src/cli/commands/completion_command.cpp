// cudabpf completion: a shell's script, which asks `cudabpf __complete` what to offer.
#include <fmt/format.h>

#include <string_view>

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

struct CompletionFlags {
  std::string_view script = BASH;
};

int print_completion(const CompletionFlags& flags) {
  fmt::print("{}", flags.script);
  return 0;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<CompletionFlags>(
      app, action, "completion", "Print a shell's completion script for cudabpf", print_completion);
  one_of(sub, "shell", flags.script, {{"bash", BASH}, {"zsh", ZSH}, {"fish", FISH}}, "The shell");
  add_footer(sub,
             {"source <(cudabpf completion bash)",
              "cudabpf completion zsh > _cudabpf   for a folder in zsh's $fpath",
              "cudabpf completion fish > cudabpf.fish   for ~/.config/fish/completions"},
             printing_statuses());
}

}  // namespace cudabpf::cli
