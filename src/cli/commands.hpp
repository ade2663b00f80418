// The subcommands. Each adds itself to the parser and, if it is the one asked for, sets the action.
#pragma once

#include <functional>
#include <string>

#include "util/result.hpp"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace cudabpf::cli {

// Does the work; returns the process's exit status.
using Action = std::function<Result<int>()>;

void add_machine(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_attach(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_functions(CLI::App& app, Action& action);
void add_schema(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

// The subcommands that read a trace.
void add_summary(CLI::App& app, Action& action);
void add_calls(CLI::App& app, Action& action);
void add_memory(CLI::App& app, Action& action);
void add_gaps(CLI::App& app, Action& action);
void add_timeline(CLI::App& app, Action& action);
void add_kernels(CLI::App& app, Action& action);
void add_ioctls(CLI::App& app, Action& action);
void add_errors(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);

std::string footer();  // of --help: examples and exit statuses
// Why the command line was refused, and what may have been meant.
std::string usage_error(const CLI::App& app, const CLI::Error& error);

}  // namespace cudabpf::cli
