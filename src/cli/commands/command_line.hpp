// The command line as shells need to know it to complete words. It is read from the parser, so that
// completion has every subcommand, option and value that the program has, and no other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace cudabpf::cli {

// What an argument may be.
enum class Kind {
  unknown,  // a number, a pattern: there is nothing to offer
  word,     // one of Word::words
  file,
  trace,    // a file, most likely *.jsonl or *.jsonl.zst
  process,  // the pid of one that runs
  program,  // the name of a process that runs
  user,
  cgroup,  // a folder below /sys/fs/cgroup
  command  // another program, with its own arguments to the end of the line
};
std::string_view to_string(Kind kind);

// What may stand at a place.
struct Word {
  std::string type;  // as in --help
  Kind kind = Kind::unknown;
  std::vector<std::string> words;
  bool several = false;    // more of them may follow
  bool separated = false;  // or be separated by commas
};

struct Flag {
  std::vector<std::string> names;  // with dashes, the long one first
  std::string description;         // one line
  std::optional<Word> value;
  bool again = false;  // it may be given several times
};

struct Subcommand {
  std::string name;  // empty: what is given without a subcommand
  std::string description;
  std::vector<Flag> flags;
  std::optional<Word> argument;
};

struct CommandLine {
  Subcommand bare;
  std::vector<Subcommand> subcommands;
};

CommandLine command_line_of(const CLI::App& app);

// The scripts.
std::string bash_completion(const CommandLine& line);
std::string zsh_completion(const CommandLine& line);
std::string fish_completion(const CommandLine& line);

}  // namespace cudabpf::cli
