// zsh has _arguments, which knows options; what each is and takes is told to it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands/command_line.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::string_view ZSH_SCRIPT = R"__(
_cudabpf_traces() {
  _files -g '*.jsonl(|.zst)' # and all files if there are none
}

# Pids with what they run. Threads of the kernel have no arguments.
_cudabpf_processes() {
  local folder text
  local -a expl pids shown
  for folder in /proc/<1->(N); do
    { text=$(<$folder/cmdline) } 2>/dev/null || continue
    [[ -n $text ]] || continue
    pids+=("${folder:t}")
    shown+=("${folder:t}  ${${text//[[:cntrl:]]/ }[1,200]}")
  done
  _wanted -V processes expl process compadd "$@" -l -d shown -a pids
}

_cudabpf_programs() {
  local folder text name
  local -aU names
  for folder in /proc/<1->(N); do
    { text=$(<$folder/cmdline); name=$(<$folder/comm) } 2>/dev/null || continue
    [[ -n $text && -n $name ]] && names+=("$name")
  done
  compadd "$@" -a names
}

# Another program and its arguments
_cudabpf_other() {
  [[ $words[1] == -- ]] && shift words && (( CURRENT-- ))
  _normal
}

_cudabpf_cgroups() {
  if [[ -z $PREFIX ]]; then
    compadd -S '' -- /sys/fs/cgroup/
  elif [[ $PREFIX == /* ]]; then
    _files -/
  fi
}
)__";

constexpr std::string_view ZSH_END = R"__(
if [[ $funcstack[1] == _cudabpf ]]; then
  _cudabpf "$@" # loaded by its name, from a folder in $fpath
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _cudabpf cudabpf
fi
)__";

std::string zsh_quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string without_meaning(const std::string& text) {
  std::string plain;
  for (char c : text) {
    if (std::string_view("[]:\\").find(c) != std::string_view::npos) plain += '\\';
    plain += c;
  }
  return plain;
}

std::string zsh_action(const Word& argument) {
  switch (argument.kind) {
    case Kind::unknown:
      return " ";
    case Kind::word:
      return fmt::format("({})", fmt::join(argument.words, " "));
    case Kind::file:
      return "_files";
    case Kind::trace:
      return "_cudabpf_traces";
    case Kind::process:
      return argument.separated ? "_sequence _cudabpf_processes" : "_cudabpf_processes";
    case Kind::program:
      return "_cudabpf_programs";
    case Kind::user:
      return "_users";
    case Kind::cgroup:
      return "_cudabpf_cgroups";
    case Kind::command:
      return "_cudabpf_other";
  }
  return "";
}

std::string zsh_specs(const Subcommand& subcommand) {
  std::string specs;
  for (const Flag& flag : subcommand.flags)
    for (const std::string& name : flag.names) {
      std::string spec = flag.again ? "*" : fmt::format("({})", fmt::join(flag.names, " "));
      spec += name;
      if (flag.value && name.starts_with("--")) spec += '=';
      spec += "[" + without_meaning(flag.description) + "]";
      if (flag.value)
        spec += ":" + without_meaning(flag.value->type) + ":" + zsh_action(*flag.value);
      specs += " \\\n        " + zsh_quoted(spec);
    }
  if (const auto& argument = subcommand.argument)
    specs += " \\\n        " +
             zsh_quoted(fmt::format("{}:{}:{}",
                                    argument->kind == Kind::command ? "*:"
                                    : argument->several             ? "*"
                                                                    : "1",
                                    without_meaning(argument->type), zsh_action(*argument)));
  return specs;
}

}  // namespace

std::string zsh_completion(const CommandLine& line) {
  std::string names, cases;
  for (const Subcommand& subcommand : line.subcommands) {
    names += fmt::format("    {}\n", zsh_quoted(subcommand.name + ":" + subcommand.description));
    // After the first word of another program's, its options are none of ours.
    bool other = subcommand.argument && subcommand.argument->kind == Kind::command;
    cases += fmt::format("    {})\n      _arguments -S{}{} ;;\n", subcommand.name,
                         other ? " -A '-*'" : "", zsh_specs(subcommand));
  }
  return fmt::format(
             "#compdef cudabpf\n# zsh completion for cudabpf, made by `cudabpf completion zsh`\n{}"
             "\n"
             "_cudabpf_subcommands() {{\n"
             "  local -a subcommands=(\n"
             "{}"
             "  )\n"
             "  _describe -t commands subcommand subcommands\n"
             "}}\n"
             "\n"
             "_cudabpf() {{\n"
             "  local context state state_descr line curcontext=$curcontext\n"
             "  local -A opt_args\n"
             "  _arguments -C -S -A '-*'{} \\\n"
             "        '1:subcommand:_cudabpf_subcommands' '*::argument:->arguments'\n"
             "  local found=$?\n"
             "  [[ $state == arguments ]] || return $found\n"
             "  curcontext=${{curcontext%:*}}-$words[1]:\n"
             "  case $words[1] in\n"
             "{}"
             "  esac\n"
             "}}\n",
             ZSH_SCRIPT, names, zsh_specs(line.bare), cases) +
         std::string(ZSH_END);
}

}  // namespace cudabpf::cli
