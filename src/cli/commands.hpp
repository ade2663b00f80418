// The subcommands. Each adds itself to the parser and, if the user chose it, sets the action.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "util/result.hpp"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace cudabpf::cli {

// Does the work; returns the process's exit status.
using Action = std::function<Result<int>()>;

// Adds one that does this.
CLI::App& add_command(CLI::App& app, Action& action, const char* name, const std::string& what,
                      Action does);

template <typename Flags>
struct Command {
  CLI::App& sub;
  Flags& flags;
};
// Adds one that does this with flags of its own.
template <typename Flags, typename Does>
Command<Flags> add_command(CLI::App& app, Action& action, const char* name, const std::string& what,
                           Does does) {
  auto flags = std::make_shared<Flags>();
  auto with_flags = [flags, does] { return does(*flags); };
  return {add_command(app, action, name, what, Action(with_flags)), *flags};
}

void add_machine(CLI::App& app, Action& action);  // what is done without a subcommand
#define COMMAND(name) void add_##name(CLI::App& app, Action& action);
#include "cli/commands.def"

// What the library inside a process starts, where variables alone have brought it there: reads the
// records of the process with this pid until it ends. Not a subcommand: users are not meant to type
// it.
bool is_inside_reader(int argc, const char* const* argv);
Result<int> read_inside(const char* pid);

// What `replay` starts: the process that touches the GPU, and that its parent asks. Not a
// subcommand, either.
bool is_replay_worker(int argc, const char* const* argv);
Result<int> work_on_replay();

// What the shells' completion calls, `cudabpf __complete WORDS…`: prints what may replace the last
// word, which the cursor is in. The first line is KIND AT WHAT, and each other one a word with,
// after a tab, what it means.
bool is_completion(int argc, const char* const* argv);
void complete(const CLI::App& app, int argc, const char* const* argv);

// Throws if an option of what is done without a subcommand stands before one.
void refuse_misplaced(const CLI::App& app);
// Why the command line was refused, and what may have been meant.
std::string usage_error(const CLI::App& app, const CLI::Error& error);

}  // namespace cudabpf::cli
