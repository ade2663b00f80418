// bash has no descriptions: a function that fills COMPREPLY.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands/command_line.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::string_view BASH_SCRIPT = R"__(
# Prints what begins with $1, for readline to choose from.
_cudabpf_matches() {
  case $kind in
    word) compgen -W "$words" -- "$1" ;;
    file) compgen -f -- "$1" ;;
    trace)
      local traces
      traces=$(compgen -f -X '!*.jsonl' -- "$1"; compgen -f -X '!*.jsonl.zst' -- "$1"; compgen -d -- "$1")
      if [[ $traces ]]; then printf '%s\n' "$traces"; else compgen -f -- "$1"; fi ;;
    process | program) compgen -W "$(_cudabpf_processes)" -- "$1" ;;
    user) compgen -u -- "$1" ;;
    cgroup)
      if [[ -z $1 ]]; then
        echo /sys/fs/cgroup
      elif [[ $1 == /* ]]; then
        compgen -d -- "$1"
      fi ;;
    command) compgen -c -- "$1" ;;
  esac
}

# The pids or names of processes, quoted. Threads of the kernel have no arguments.
_cudabpf_processes() {
  local folder first name
  for folder in /proc/[0-9]*; do
    first='' name=''
    { read -r -d '' -n 1 first <"$folder/cmdline"; IFS= read -r name <"$folder/comm"; } 2>/dev/null
    if [[ -z $first || -z $name ]]; then
      continue
    elif [[ $kind == process ]]; then
      echo "${folder#/proc/}"
    else
      printf '%q\n' "$(printf '%q' "$name")"
    fi
  done | sort -u
}

# The words from number $1 on are another program's.
_cudabpf_other() {
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "$1"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD > $1)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
  fi
}

_cudabpf() {
  local current=${COMP_WORDS[COMP_CWORD]} subcommand='' kind='' words='' several='' separated=''
  local options_end='' before='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == = ]]; then
      continue # readline makes three words of --option=value
    elif [[ -z $options_end && $word == -- ]]; then
      options_end=yes kind=''
    elif [[ -z $options_end && $word == -?* ]]; then
      _cudabpf_takes "$subcommand $word"
    elif [[ $kind ]]; then
      [[ $several ]] || kind=''
    elif [[ -z $subcommand ]]; then
      subcommand=$word
    else
      _cudabpf_takes "$subcommand"
      if [[ $kind == command ]]; then
        _cudabpf_other "$i"
        return
      fi
      kind=''
    fi
  done

  if [[ $current == = ]]; then
    current=''
  elif [[ -z $options_end && $current == --*=* ]]; then
    before=${current%%=*}=
    _cudabpf_takes "$subcommand ${current%%=*}"
    current=${current#*=}
  elif [[ -z $options_end && $current == -* && ( -z $kind || $several ) ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_cudabpf_options "$subcommand")" -- "$current")
    return
  fi
  if [[ -z $kind && -z $before ]]; then
    _cudabpf_takes "$subcommand"
    if [[ $kind == command ]]; then
      _cudabpf_other "$COMP_CWORD"
      return
    elif [[ -z $kind && -z $current && -z $options_end ]]; then
      kind=word words=$(_cudabpf_options "$subcommand")
    fi
  fi
  if [[ $separated && $current == *,* ]]; then
    before+=${current%,*},
    current=${current##*,}
  fi
  case $kind in
    file | trace | cgroup)
      compopt -o filenames 2>/dev/null # which quotes them
      current=${current#[\'\"]}
      current=${current//\\/} ;;
  esac
  mapfile -t COMPREPLY < <(_cudabpf_matches "$current")
  COMPREPLY=("${COMPREPLY[@]/#/"$before"}")
}
complete -F _cudabpf cudabpf
)__";

std::string bash_pattern(const std::string& subcommand, const std::vector<std::string>& names) {
  std::string pattern;
  for (const std::string& name : names)
    pattern += fmt::format("{}'{} {}'", pattern.empty() ? "" : " | ", subcommand, name);
  return pattern;
}

std::string bash_case(const std::string& pattern, const Word& argument) {
  std::string set = fmt::format("kind='{}'", to_string(argument.kind));
  if (!argument.words.empty()) set += fmt::format(" words='{}'", fmt::join(argument.words, " "));
  if (argument.several) set += " several=yes";
  if (argument.separated) set += " separated=yes";
  return fmt::format("    {}) {} ;;\n", pattern, set);
}

std::string bash_cases(const Subcommand& subcommand) {
  std::string cases;
  for (const Flag& flag : subcommand.flags)
    if (flag.value) cases += bash_case(bash_pattern(subcommand.name, flag.names), *flag.value);
  if (subcommand.argument) cases += bash_case("'" + subcommand.name + "'", *subcommand.argument);
  return cases;
}

std::string bash_options(const Subcommand& subcommand) {
  std::string options;
  for (const Flag& flag : subcommand.flags)
    options += fmt::format("{}{}", options.empty() ? "" : " ", fmt::join(flag.names, " "));
  return fmt::format("    '{}') echo '{}' ;;\n", subcommand.name, options);
}

}  // namespace

std::string bash_completion(const CommandLine& line) {
  std::vector<std::string> names;
  std::string takes = bash_cases(line.bare), options = bash_options(line.bare);
  for (const Subcommand& subcommand : line.subcommands) {
    names.push_back(subcommand.name);
    takes += bash_cases(subcommand);
    options += bash_options(subcommand);
  }
  // Without a subcommand, the argument is one.
  takes += bash_case("''", {.type = {}, .kind = Kind::word, .words = names});
  return fmt::format(
             "# bash completion for cudabpf, made by `cudabpf completion bash`\n"
             "\n"
             "# What is taken by `SUBCOMMAND`, or by `SUBCOMMAND --option`; no kind: nothing.\n"
             "_cudabpf_takes() {{\n"
             "  kind='' words='' several='' separated=''\n"
             "  case $1 in\n"
             "{}"
             "  esac\n"
             "}}\n"
             "\n"
             "_cudabpf_options() {{\n"
             "  case $1 in\n"
             "{}"
             "  esac\n"
             "}}\n",
             takes, options) +
         std::string(BASH_SCRIPT);
}

}  // namespace cudabpf::cli
