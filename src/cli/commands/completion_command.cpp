// cudabpf completion: shell completion, made from the parser itself, so that it is never outdated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.hpp"

namespace cudabpf::cli {

namespace {

std::string options_of(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words += " --" + name;
    for (const std::string& name : option->get_snames()) words += " -" + name;
  }
  return words;
}

std::string subcommands_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* sub : app.get_subcommands({})) words += " " + sub->get_name();
  return words;
}

// After `run … --` the words belong to the command.
constexpr std::string_view BASH_BEGIN = R"__(# bash completion for cudabpf
_cudabpf() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      COMPREPLY=($(compgen -c -f -- "$current"))
      return
    fi
  done
  case $previous in
    --profile) COMPREPLY=($(compgen -W "light default full" -- "$current")); return ;;
    --format) COMPREPLY=($(compgen -W "chrome perfetto csv alnair all" -- "$current")); return ;;
    --no-feature)
      COMPREPLY=($(compgen -W "uprobe_multi sleepable watch_mappings process_events" -- "$current")); return ;;
    -o|--output|--library) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --user) COMPREPLY=($(compgen -u -- "$current")); return ;;
    -p|--pid) COMPREPLY=($(compgen -W "$(ls /proc | grep -E '^[0-9]+$')" -- "$current")); return ;;
  esac
  case ${COMP_WORDS[1]} in
)__";
constexpr std::string_view BASH_END = R"__(  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _cudabpf cudabpf
)__";

std::string bash_script(const CLI::App& app) {
  std::string script(BASH_BEGIN);
  for (const CLI::App* sub : app.get_subcommands({}))
    script += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), options_of(*sub));
  script += fmt::format("    *) words=\"{}{}\" ;;\n", subcommands_of(app), options_of(app));
  return script += BASH_END;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>("bash");
  CLI::App* sub = app.add_subcommand(
      "completion", "Print a shell completion script: source <(cudabpf completion bash)");
  sub->add_option("shell", *shell, "The shell that it is for")
      ->type_name("bash|zsh")
      ->check(CLI::IsMember({"bash", "zsh"}).description(""));
  sub->callback([shell, &app, &action] {
    action = [shell, &app] {
      if (*shell == "zsh") fmt::print("autoload -U +X bashcompinit && bashcompinit\n");
      fmt::print("{}", bash_script(app));
      return 0;
    };
  });
}

}  // namespace cudabpf::cli
