#include "cli/help.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>

#include "../util/pseudo_terminal.hpp"
#include "util/text/printable.hpp"

using namespace cudabpf;
using namespace cudabpf::cli;

namespace {

struct Program {
  CLI::App app{"What the program does, in a sentence that is longer than forty columns."};
  std::string text;

  Program() {
    app.name("cudabpf");
    app.formatter(help_formatter());
    app.add_option("-o,--output", text, "Where it goes, which takes some words to explain in full")
        ->type_name("FILE");
    app.add_option("--a-rather-long-option", text, "First.\nSecond.")->type_name("light|full");
    CLI::App* sub =
        app.add_subcommand("summary", "What there is to say about it, in one line of words");
    sub->add_option("trace", text, "The trace")->type_name("TRACE")->required();
    add_footer(*sub, {"cudabpf summary t", "cudabpf summary --json t   for programs"}, "0 done.");
  }
};

}  // namespace

TEST_CASE("--help is as wide as requested") {
  Variable columns("COLUMNS", "80");
  Program program;
  CHECK(help_of(program.app) ==
        "What the program does, in a sentence that is longer than forty columns.\n"
        "Usage: cudabpf [OPTIONS] [SUBCOMMAND]\n"
        "\n"
        "Subcommands:\n"
        "  summary      What there is to say about it, in one line of words\n"
        "\n"
        "Options:\n"
        "  -h,--help                 Print this help message and exit\n"
        "  -o,--output FILE          Where it goes, which takes some words to explain in\n"
        "                            full\n"
        "  --a-rather-long-option light|full\n"
        "                            First.\n"
        "                            Second.\n"
        "\n");
}

TEST_CASE("A subcommand's --help ends with its examples") {
  Variable columns("COLUMNS", "80");
  Program program;
  CHECK(help_of(*program.app.get_subcommand("summary")) ==
        "What there is to say about it, in one line of words\n"
        "Usage: cudabpf summary [OPTIONS] trace\n"
        "\n"
        "Positionals:\n"
        "  trace TRACE REQUIRED      The trace\n"
        "\n"
        "Options:\n"
        "  -h,--help                 Print this help message and exit\n"
        "\n"
        "Examples:\n"
        "  cudabpf summary t\n"
        "  cudabpf summary --json t   for programs\n"
        "\n"
        "Exit status: 0 done.\n");
}

TEST_CASE("On a narrow terminal --help has one column, and nothing is wider but a command") {
  Variable columns("COLUMNS", "40");
  Program program;
  std::string help = help_of(program.app) + help_of(*program.app.get_subcommand("summary"));
  CHECK(help.find("  -o,--output FILE\n      Where it goes, which takes some\n") !=
        std::string::npos);
  CHECK(help.find("  cudabpf summary --json t\n      for programs\n") != std::string::npos);
  for (std::size_t at = 0; at < help.size(); at = help.find('\n', at) + 1)
    CHECK(width_of(help.substr(at, help.find('\n', at) - at)) <= 40);
}

TEST_CASE("Without a given width, --help has 80 columns; lines are never too long to read") {
  Variable columns("COLUMNS", "1000");
  Program program;
  program.app.description(std::string(99, 'x') + " " + std::string(99, 'y'));
  CHECK(
      help_of(program.app).starts_with(std::string(99, 'x') + "\n" + std::string(99, 'y') + "\n"));
}
