#include "cli/help.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "util/console/terminal.hpp"
#include "util/exit_codes.hpp"
#include "util/text/printable.hpp"
#include "util/text/wrapped.hpp"

namespace cudabpf::cli {

namespace {

constexpr unsigned NARROWEST_HELP = 40, WIDEST_HELP = 100;  // longer lines are hard to read
constexpr unsigned ROOM_FOR_TWO = 68;  // with less, an option stands above its description
constexpr std::size_t OF_SUBCOMMANDS = 15, OF_OPTIONS = 28, BELOW_NAME = 6;
constexpr std::string_view INDENT = "  ", EXAMPLES = "Examples:\n";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
  }
  return lines;
}

struct Example {
  std::string_view command, what;
};

Example example_of(std::string_view line) {
  std::size_t end = std::min(line.find("  "), line.size());
  std::size_t begin = std::min(line.find_first_not_of(' ', end), line.size());
  return {line.substr(0, end), line.substr(begin)};
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(unsigned width) : width_(width) {}

  // Subcommands come before options: there are fewer of them, and users look for them first.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           make_subcommands(app, mode) + make_groups(app, mode) + "\n" + make_footer(app);
  }

  std::string make_description(const CLI::App* app) const override {
    return paragraphs(app->get_description());
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    return paragraphs(CLI::Formatter::make_usage(app, std::move(name)));
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    return two_columns(sub->get_name(), sub->get_description(), OF_SUBCOMMANDS);
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    bool may_have_value = option->get_items_expected_max() == 0 && !option->get_type_name().empty();
    std::string what =
        make_option_name(option, is_positional) +
        (may_have_value ? fmt::format("[={}]", option->get_type_name()) : make_option_opts(option));
    what = what.substr(0, what.find(" Excludes: "));  // the parser says so where it matters
    return two_columns(what, make_option_desc(option),
                       width_ < ROOM_FOR_TWO ? BELOW_NAME : OF_OPTIONS);
  }

  std::string make_footer(const CLI::App* app) const override {
    std::string footer = app->get_footer();
    std::size_t end = footer.find("\n\n");
    if (!footer.starts_with(EXAMPLES) || end == std::string::npos) return paragraphs(footer);
    std::string_view examples =
        std::string_view(footer).substr(EXAMPLES.size(), end - EXAMPLES.size());
    return std::string(EXAMPLES) + examples_text(lines_of(examples)) +
           paragraphs(std::string_view(footer).substr(end + 1));
  }

 private:
  std::string paragraphs(std::string_view text) const {
    std::string shown;
    for (std::string_view paragraph : lines_of(text)) {
      if (paragraph.empty()) shown += '\n';
      for (std::string_view line : wrapped(paragraph, width_)) (shown += line) += '\n';
    }
    return shown;
  }

  std::string two_columns(const std::string& name, const std::string& description,
                          std::size_t column) const {
    std::string shown = fmt::format("{}{}", INDENT, name);
    bool beside = width_of(shown) + INDENT.size() <= column;
    std::string blanks(column, ' ');
    shown += beside ? blanks.substr(width_of(shown)) : "\n" + blanks;
    bool first = true;
    for (std::string_view paragraph : lines_of(description))
      for (std::string_view line : wrapped(paragraph, width_ - column)) {
        if (!first) shown += "\n" + blanks;
        shown += line;
        first = false;
      }
    return shown + "\n";
  }

  // A command is never broken: people copy it.
  std::string examples_text(const std::vector<std::string_view>& lines) const {
    std::size_t widest = 0, all = 0;
    for (std::string_view line : lines) {
      Example example = example_of(line);
      if (!example.what.empty()) widest = std::max(widest, width_of(example.command));
    }
    for (std::string_view line : lines)
      all = std::max(all, INDENT.size() + widest + 3 + width_of(example_of(line).what));
    std::string shown;
    for (std::string_view line : lines) {
      auto [command, what] = example_of(line);
      shown += fmt::format("{}{}", INDENT, command);
      if (!what.empty() && all <= width_)
        shown += std::string(widest + 3 - width_of(command), ' ').append(what);
      else if (!what.empty())
        for (std::string_view part : wrapped(what, width_ - BELOW_NAME))
          shown += fmt::format("\n{:{}}{}", "", BELOW_NAME, part);
      shown += '\n';
    }
    return shown;
  }

  unsigned width_;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>(
      std::clamp(terminal_of(STDOUT_FILENO).width, NARROWEST_HELP, WIDEST_HELP));
}

// Where the traces that examples read are: below this folder, as in a checkout, or where they are
// installed with this program.
static std::string folder_of_examples() {
  constexpr const char *HERE = "traces/", *ONE = "h200-gpt2.jsonl.zst";
  std::error_code failed;
  namespace fs = std::filesystem;
  if (fs::exists(fs::path(HERE) / ONE, failed)) return HERE;
  fs::path program = fs::read_symlink("/proc/self/exe", failed);
  fs::path installed = program.parent_path().parent_path() / "share/doc/cudabpf/traces/";
  return fs::exists(installed / ONE, failed) ? installed.string() : HERE;
}

void add_footer(CLI::App& app, const std::vector<std::string>& examples,
                std::string_view exit_statuses) {
  static const std::string folder = folder_of_examples();
  constexpr std::string_view WRITTEN = "traces/";
  std::string text(EXAMPLES);
  for (std::string example : examples) {
    for (std::string_view kind : {"traces/h200-", "traces/example-"})
      for (std::size_t at = 0; (at = example.find(kind, at)) != std::string::npos;
           at += folder.size())
        example.replace(at, WRITTEN.size(), folder);
    (text += example) += '\n';
  }
  app.footer(fmt::format("{}\nExit status: {}", text, exit_statuses));
}

std::string help_of(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent; parent = parent->get_parent())
    name.insert(0, parent->get_name() + " ");
  return app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal);
}

std::string capture_statuses() {
  using namespace exit_code;
  return fmt::format(
      "for `run`, its command's ({} + N if signal N ended it). Otherwise {} done, {} wrong usage, "
      "{} not permitted, {} kernel not supported, {} no such target, {} the trace is incomplete or "
      "could not be created, "
      "{} other failure, {} command cannot be executed, {} command not found.",
      SIGNAL_BASE, OK, USAGE, NOT_PERMITTED, KERNEL_UNSUPPORTED, NO_TARGET, OUTPUT_FAILED, FAILED,
      CANNOT_EXECUTE, NOT_FOUND);
}

std::string printing_statuses() {
  using namespace exit_code;
  return fmt::format("{} done; {} wrong usage; {} the output could not be written in full.", OK,
                     USAGE, OUTPUT_FAILED);
}

}  // namespace cudabpf::cli
