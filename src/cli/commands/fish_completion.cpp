// fish has a line for each option and subcommand, and asks a function where the cursor is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands/command_line.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::string_view FISH_SCRIPT = R"__(
# Prints the words of the line before the cursor: first the subcommand, or `none`; then `options`, or
# `arguments` and these.
function __cudabpf_given
    set -l words (commandline -opc)[2..-1]
    set -l subcommand none
    set -l valued (__cudabpf_valued none)
    while set -q words[1]
        if contains -- $words[1] $valued
            set -e words[1..2]
        else if string match -qr -- '^-.' $words[1]; and test $words[1] != --
            set -e words[1]
        else if test $words[1] != --; and test $subcommand = none
            set subcommand $words[1]
            set valued (__cudabpf_valued $subcommand)
            set -e words[1]
        else
            test $words[1] = --; and set -e words[1]
            printf '%s\n' $subcommand arguments $words
            return
        end
    end
    printf '%s\n' $subcommand options
end

function __cudabpf_in
    set -l given (__cudabpf_given)
    test $given[1] = $argv[1]
end

# Another program and its arguments
function __cudabpf_other
    set -l words (__cudabpf_given)[3..-1]
    set -l current (commandline -ct)
    test (count $words) -eq 0; and string match -q -- '-*' $current; and return
    complete -C (string join -- ' ' $words $current | string collect)
end

function __cudabpf_traces
    set -l files (__fish_complete_path (commandline -ct))
    string match -r -- '^[^\t]*(?:/|\.jsonl|\.jsonl\.zst)(?:\t.*)?$' $files
    or printf '%s\n' $files
end

# Pids with what they run. Threads of the kernel have no arguments.
function __cudabpf_processes
    grep -saHm1 '' /proc/*/cmdline | tr '\0' ' ' | string replace -ra '[[:cntrl:]]' ' ' |
        string replace -rf '^/proc/([0-9]+)/cmdline:([^ ].{0,200}).*' '$1'\t'$2'
end

function __cudabpf_programs
    set -l pids (__cudabpf_processes | string match -r '^[0-9]+')
    grep -sahm1 '' /proc/$pids/comm
end

function __cudabpf_cgroups
    set -l current (commandline -ct)
    if test -z "$current"
        echo /sys/fs/cgroup/
    else if string match -q '/*' -- $current
        __fish_complete_directories $current ''
    end
end

)__";

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_offers(const Word& argument) {
  switch (argument.kind) {
    case Kind::unknown:
      return "";
    case Kind::word:
      return fmt::format(" -a '{}'", fmt::join(argument.words, " "));
    case Kind::file:
      return " -F";
    case Kind::trace:
      return " -k -a '(__cudabpf_traces)'";
    case Kind::process:
      return argument.separated ? " -a '(__fish_complete_list , __cudabpf_processes)'"
                                : " -a '(__cudabpf_processes)'";
    case Kind::program:
      return " -a '(__cudabpf_programs)'";
    case Kind::user:
      return " -a '(__fish_complete_users)'";
    case Kind::cgroup:
      return " -a '(__cudabpf_cgroups)'";
    case Kind::command:
      return " -a '(__cudabpf_other)'";
  }
  return "";
}

std::string fish_lines(const Subcommand& subcommand, const std::string& place) {
  std::string begin = fmt::format("complete -c cudabpf -n '__cudabpf_in {}'", place), lines;
  for (const Flag& flag : subcommand.flags) {
    lines += begin;
    for (const std::string& name : flag.names)
      lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    lines += " -d " + fish_quoted(flag.description);
    if (flag.value)
      lines += (flag.value->kind == Kind::file ? " -r" : " -x") + fish_offers(*flag.value);
    lines += '\n';
  }
  if (subcommand.argument) lines += begin + fish_offers(*subcommand.argument) + "\n";
  return lines;
}

std::string fish_valued(const Subcommand& subcommand, const std::string& place) {
  std::string names;
  for (const Flag& flag : subcommand.flags)
    if (flag.value) names += fmt::format(" {}", fmt::join(flag.names, " "));
  return names.empty()
             ? ""
             : fmt::format("        case {}\n            printf '%s\\n'{}\n", place, names);
}

}  // namespace

std::string fish_completion(const CommandLine& line) {
  std::string valued = fish_valued(line.bare, "none"), lines = fish_lines(line.bare, "none");
  for (const Subcommand& subcommand : line.subcommands) {
    valued += fish_valued(subcommand, subcommand.name);
    lines += fmt::format("complete -c cudabpf -n '__cudabpf_in none' -a {} -d {}\n",
                         subcommand.name, fish_quoted(subcommand.description));
    lines += fish_lines(subcommand, subcommand.name);
  }
  return fmt::format(
             "# fish completion for cudabpf, made by `cudabpf completion fish`\n"
             "\n"
             "# The options that take a value\n"
             "function __cudabpf_valued\n"
             "    switch $argv[1]\n"
             "{}"
             "    end\n"
             "end\n",
             valued) +
         std::string(FISH_SCRIPT) + "complete -c cudabpf -f\n" + lines;
}

}  // namespace cudabpf::cli
