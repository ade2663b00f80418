// How --help looks: as wide as the terminal, with examples last.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace cudabpf::cli {

// For standard output. Where that is no terminal, 80 columns unless COLUMNS says another number: a
// pager, a mail and a document all have that many. In descriptions a line's end begins a paragraph.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// What ends a subcommand's --help. An example is a command; after two blanks or more, what it is
// for.
void add_footer(CLI::App& app, const std::vector<std::string>& examples,
                std::string_view exit_statuses);

// What `name` prints, `cudabpf NAME --help`; of the whole program for the one without a parent.
std::string help_of(const CLI::App& app);

// The exit statuses of subcommands that trace, and of those that only print.
std::string capture_statuses();
std::string printing_statuses();

}  // namespace cudabpf::cli
