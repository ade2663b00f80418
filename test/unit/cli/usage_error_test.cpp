#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "support/temporary_folder.hpp"

using namespace cudabpf::cli;
using Catch::Matchers::EndsWith;

namespace {

// The message about these arguments; nothing if they are right.
std::string said(std::vector<std::string> arguments) {
  CLI::App app;
  std::string text;
  app.require_subcommand(0, 1);
  app.add_option("-o,--output", text);
  CLI::App* attach = app.add_subcommand("attach");
  attach->add_option("-p,--pid", text)->required();
  attach->add_option("-o,--output", text);
  int number = 0;
  attach->add_option("-n,--number", number);
  CLI::App* summary = app.add_subcommand("summary");
  summary->add_flag("--json");
  app.add_subcommand("functions");
  app.add_subcommand("run")->add_option("command", text)->type_name("CMD")->required();
  CLI::App* show = app.add_subcommand("show");
  show->add_option("trace", text)->type_name("TRACE")->required();
  one_of(show->add_option("--format", text), {"chrome", "perfetto"});
  app.callback([&] { refuse_misplaced(app); });
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector to be
    app.parse(std::move(arguments));
  } catch (const CLI::Error& error) {
    return usage_error(app, error);
  }
  return {};
}

std::string unknown(const std::string& argument, const std::string& hint) {
  return "cudabpf: error: unknown argument " + argument + "\ncudabpf: hint: " + hint + "\n";
}

constexpr const char* ALL = "see `cudabpf --help`, or --help after a subcommand";

}  // namespace

TEST_CASE("Correct arguments get no complaint") {
  CHECK(said({}).empty());
  CHECK(said({"-o", "file"}).empty());
  CHECK(said({"attach", "-p", "1", "-o", "file"}).empty());
}

TEST_CASE("What may have been meant is a name that is like what was typed, in its place") {
  CHECK(said({"sumary"}) == unknown("sumary", "did you mean summary?"));
  CHECK(said({"--ouput", "file"}) == unknown("--ouput", "did you mean --output?"));
  CHECK(said({"--ouput=file"}) == unknown("--ouput=file", "did you mean --output?"));
  CHECK(said({"summary", "--jsom"}) == unknown("--jsom", "did you mean --json?"));
  // The options of one are no use to another, and no subcommand follows a subcommand.
  CHECK(said({"--jsom"}) == unknown("--jsom", ALL));
  CHECK(said({"summary", "--ouput"}) == unknown("--ouput", "see `cudabpf summary --help`"));
  CHECK(said({"summary", "atach"}) == unknown("atach", "see `cudabpf summary --help`"));
}

TEST_CASE("Options before the subcommand are not dropped without a word") {
  std::string hint = "\ncudabpf: hint: see `cudabpf attach --help`\n";
  CHECK(said({"-o", "file", "attach", "-p", "1"}) ==
        "cudabpf: error: --output stands before `attach`, where it has no effect: put it after" +
            hint);
  CHECK(said({"--output=file", "summary"}) ==
        "cudabpf: error: --output stands before `summary`, which does not have it\n"
        "cudabpf: hint: see `cudabpf summary --help`\n");
  CHECK(said({"--json", "summary"}) ==
        unknown("--json", "it goes after the subcommand: `cudabpf summary --json`"));
}

TEST_CASE("Where nothing is like it, the hint says where to look") {
  CHECK(said({"xyzzy"}) == unknown("xyzzy", ALL));
  CHECK(said({"summary", "xyzzy"}) == unknown("xyzzy", "see `cudabpf summary --help`"));
}

TEST_CASE("The first of several unknown arguments is named, and -- is not one") {
  CHECK(said({"xyzzy", "plugh"}) == unknown("xyzzy", ALL));
  CHECK(said({"--", "plugh"}) == unknown("plugh", ALL));
}

TEST_CASE("A file alone may be a trace to read") {
  TemporaryFolder folder;
  std::string trace = folder.write("t.jsonl", "").string();
  CHECK(said({trace}) == unknown(trace, "`cudabpf summary " + trace + "` reads a trace"));
  CHECK(said({trace + ".missing"}) == unknown(trace + ".missing", ALL));
}

TEST_CASE("A command alone may be one to trace") {
  TemporaryFolder folder;
  std::string program = folder.write("a program", "#!/bin/sh\n").string();
  CHECK(said({program}) == unknown(program, "`cudabpf summary '" + program + "'` reads a trace"));
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  CHECK(said({program, "-x"}) ==
        unknown(program, "`cudabpf run -- '" + program + "'` traces a command"));
}

TEST_CASE("What an option takes is known without it") {
  auto meant = [](const std::string& command) { return "did you mean `cudabpf " + command + "`?"; };
  CHECK(said({"attach", "-p", "1", "4242"}) == unknown("4242", meant("attach --pid 4242")));
  CHECK(said({"attach", "-p", "1", "python3"}) ==
        unknown("python3", meant("attach --name python3")));
  CHECK(said({"functions", "*Launch*"}) ==
        unknown("*Launch*", meant("functions --match '*Launch*'")));
  CHECK(said({"attach", "-p", "1", "--gpu"}) ==
        unknown("--gpu",
                "recording inside a process begins where it begins: `cudabpf run --gpu -- CMD` "
                "starts it"));
}

TEST_CASE("What is missing or wrong is reported in plain words") {
  auto refused = [](const std::string& what, const std::string& sub) {
    return "cudabpf: error: " + what + "\ncudabpf: hint: see `cudabpf " + sub + " --help`\n";
  };
  CHECK(said({"show"}) == refused("missing TRACE: usage is `cudabpf show TRACE`", "show"));
  CHECK(said({"run"}) == refused("missing CMD: usage is `cudabpf run -- CMD`", "run"));
  CHECK(said({"attach", "-p", "1", "-n", "abc"}) ==
        refused("--number: abc is not a number", "attach"));
  CHECK(
      said({"show", "t", "--format", "perfeto"}) ==
      refused("--format: perfeto is not one of chrome, perfetto; did you mean perfetto?", "show"));
  CHECK(said({"show", "t", "--format", "x"}) ==
        refused("--format: x is not one of chrome, perfetto", "show"));
}

TEST_CASE("Other errors are reported in the parser's words, with the same hints") {
  CHECK_THAT(said({"attach"}), EndsWith("\ncudabpf: hint: see `cudabpf attach --help`\n"));
  CHECK_THAT(said({"-o"}), EndsWith(std::string("\ncudabpf: hint: ") + ALL + "\n"));
}

TEST_CASE("An argument cannot control the terminal that it is quoted on") {
  CHECK(said({"\x1b[31mred\n"}) == unknown("?[31mred?", ALL));
}

TEST_CASE("For diff, -- separates the traces of the two sides") {
  auto parsed = [](std::vector<const char*> words) {
    words.insert(words.begin(), "cudabpf");
    auto arguments = arguments_of(static_cast<int>(words.size()), words.data());
    std::reverse(arguments.begin(), arguments.end());
    return arguments;
  };
  using Words = std::vector<std::string>;
  CHECK(parsed({"diff", "A", "B"}) == Words{"diff", "A", "B"});
  CHECK(parsed({"diff", "A", "--", "B"}) == Words{"diff", "A", "--to", "B"});
  CHECK(parsed({"diff", "A", "--to", "B"}) == Words{"diff", "A", "--to", "B"});
  CHECK_THROWS_AS(parsed({"diff", "A", "--", "B", "--", "C"}), CLI::ValidationError);
  CHECK_THROWS_AS(parsed({"diff", "A", "--to=B", "--", "C"}), CLI::ValidationError);
  // Everywhere else it ends the options.
  CHECK(parsed({"run", "--", "diff", "--"}) == Words{"run", "--", "diff", "--"});
  CHECK(parsed({}).empty());
}

TEST_CASE("A value that may be left out may also follow a blank") {
  auto joined = [](std::vector<std::string> words) {
    join_optional_values(words);
    return words;
  };
  using Words = std::vector<std::string>;
  CHECK(joined({"run", "--sample", "50", "--", "true"}) ==
        Words{"run", "--sample=50", "--", "true"});
  CHECK(joined({"run", "--gpu", "graphs", "-o", "t", "--sample", "5s", "--", "x"}) ==
        Words{"run", "--gpu=graphs", "-o", "t", "--sample=5s", "--", "x"});
  CHECK(joined({"run", "--sample", "50", "true"}) == Words{"run", "--sample=50", "true"});
  // What belongs to the command is its own.
  CHECK(joined({"run", "./app", "--sample", "50"}) == Words{"run", "./app", "--sample", "50"});
  CHECK(joined({"run", "--", "./app", "--gpu", "graphs"}) ==
        Words{"run", "--", "./app", "--gpu", "graphs"});
  CHECK(joined({"run", "--sample", "7z", "x"}) == Words{"run", "--sample", "7z", "x"});
  CHECK(joined({"run", "--gpu", "./app"}) == Words{"run", "--gpu", "./app"});
  CHECK(joined({"--sample"}) == Words{"--sample"});
  CHECK(joined({}).empty());
}
