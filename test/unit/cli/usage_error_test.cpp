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
#include "support/temporary_folder.hpp"

using namespace cudabpf::cli;
using Catch::Matchers::EndsWith;

namespace {

// What is said of these arguments; nothing if they are right.
std::string said(std::vector<std::string> arguments) {
  CLI::App app;
  std::string text;
  app.require_subcommand(0, 1);
  app.add_option("-o,--output", text);
  CLI::App* attach = app.add_subcommand("attach");
  attach->add_option("-p,--pid", text)->required();
  attach->add_option("-o,--output", text);
  app.add_subcommand("summary")->add_flag("--json");
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
  return "cudabpf: error: unknown argument " + argument + "\ncudabpf: error:   " + hint + "\n";
}

constexpr const char* ALL = "`cudabpf --help`, or --help after a subcommand, says what there is";

}  // namespace

TEST_CASE("What is right is not complained of") {
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
  CHECK(said({"summary", "--ouput"}) ==
        unknown("--ouput", "`cudabpf summary --help` says what there is"));
  CHECK(said({"summary", "atach"}) ==
        unknown("atach", "`cudabpf summary --help` says what there is"));
}

TEST_CASE("Options that stand before the subcommand are not dropped without a word") {
  std::string hint = "\ncudabpf: error:   `cudabpf attach --help` says what there is\n";
  CHECK(said({"-o", "file", "attach", "-p", "1"}) ==
        "cudabpf: error: --output stands before `attach`, where it has no effect: put it after" +
            hint);
  CHECK(said({"--output=file", "summary"}) ==
        "cudabpf: error: --output stands before `summary`, which does not have it\n"
        "cudabpf: error:   `cudabpf summary --help` says what there is\n");
  CHECK(said({"--json", "summary"}) ==
        unknown("--json", "it goes after the subcommand: `cudabpf summary --json`"));
}

TEST_CASE("Where nothing is like it, the hint says where to look") {
  CHECK(said({"xyzzy"}) == unknown("xyzzy", ALL));
  CHECK(said({"attach", "-p", "1", "xyzzy"}) ==
        unknown("xyzzy", "`cudabpf attach --help` says what there is"));
}

TEST_CASE("Of several unknown arguments the first is named, and -- is none") {
  CHECK(said({"xyzzy", "plugh"}) == unknown("xyzzy", ALL));
  CHECK(said({"--", "plugh"}) == unknown("plugh", ALL));
}

TEST_CASE("Who gives a file alone may want to read it as a trace") {
  TemporaryFolder folder;
  std::string trace = folder.write("t.jsonl", "").string();
  CHECK(said({trace}) == unknown(trace, "`cudabpf summary " + trace + "` reads a trace"));
  CHECK(said({trace + ".missing"}) == unknown(trace + ".missing", ALL));
}

TEST_CASE("Other errors are told in the parser's words, with the same hints") {
  CHECK_THAT(said({"attach"}), EndsWith("\ncudabpf: error:   `cudabpf attach --help` says what "
                                        "there is\n"));
  CHECK_THAT(said({"-o"}), EndsWith(std::string("\ncudabpf: error:   ") + ALL + "\n"));
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
