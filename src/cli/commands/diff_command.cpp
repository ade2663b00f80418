// cudabpf diff: what changed from one trace to another.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/diff/difference.hpp"
#include "cli/commands.hpp"
#include "cli/one_of.hpp"
#include "cli/reading_command.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

struct DiffFlags {
  std::vector<std::string> traces, to;
  std::string by = "name";
  Top top{15};
  bool json = false;
};

// The files of each side: one each, or those before and those after --to.
struct Sides {
  std::vector<std::string> a, b;
};

Result<Sides> sides_of(const DiffFlags& flags) {
  Sides sides{flags.traces, flags.to};
  if (sides.b.empty()) {
    if (sides.a.size() != 2)
      return Error{fmt::format("diff takes two traces, not {}", sides.a.size()),
                   "of rotated ones: cudabpf diff A.0001.jsonl A.0002.jsonl --to B.0001.jsonl …",
                   exit_code::USAGE};
    sides.b = {sides.a.back()};
    sides.a.pop_back();
  }
  if (std::count(sides.a.begin(), sides.a.end(), "-") +
          std::count(sides.b.begin(), sides.b.end(), "-") >
      1)
    return Error{"standard input can be one of the traces, not two", {}, exit_code::USAGE};
  return sides;
}

std::string names_of(const std::vector<std::string>& paths) {
  std::string names;
  for (const std::string& path : paths)
    names += (names.empty() ? "" : ", ") + analyze::input_name(path);
  return printable(names);
}

// A trace and its measures; the reader owns the names.
struct Measured {
  std::unique_ptr<analyze::TraceReader> reader;
  std::unique_ptr<analyze::Measures> measures;
};

Result<Measured> measure(const std::vector<std::string>& paths) {
  Measured measured;
  measured.reader = TRY(open_trace(paths));
  measured.measures = std::make_unique<analyze::Measures>(measured.reader->names());
  TRY(analyze::analyze(*measured.reader, {measured.measures.get()}));
  return measured;
}

// When and where it was taken.
void add_taken(Page& page, const analyze::TraceFacts& facts) {
  Moments moments(analyze::clocks_in(facts.header).realtime, Moments::Zone::none);
  std::string taken = analyze::heading_of(facts, moments);
  if (!taken.empty()) page.line("   " + shortened(printable(taken), page.width() - 3));
}

analyze::Json json_of(const analyze::Difference& difference, const Measured& a, const Measured& b,
                      const Top& top) {
  analyze::Json json = {{"a", analyze::facts_json(a.reader->facts())},
                        {"b", analyze::facts_json(b.reader->facts())}};
  json.update(difference_json(difference));
  top.cut(json, {"functions", "kernels", "ioctls", "failures"});
  return json;
}

Result<int> print_diff(const DiffFlags& flags) {
  auto sides = TRY(sides_of(flags));
  auto a = TRY(measure(sides.a));
  auto b = TRY(measure(sides.b));
  auto by = flags.by == "name" ? analyze::Kernels::By::name : analyze::Kernels::By::configuration;
  analyze::Difference difference = analyze::difference(*a.measures, *b.measures, by);
  if (flags.json) {
    print_json(json_of(difference, a, b, flags.top), stdout);
    return 0;
  }
  Page page = page_for(stdout);
  for (auto [name, files, of] : {std::tuple{"A", &sides.a, &a}, {"B", &sides.b, &b}}) {
    page.line(fmt::format("{}: {}", name, names_of(*files)));
    add_taken(page, of->reader->facts());
  }
  for (auto [name, of] : {std::pair{"A", &a}, {"B", &b}})
    if (!of->reader->facts().calls) page.line(fmt::format("{} holds no calls.", name));
  add_difference(page, difference, flags.top.rows);
  page.say_left_out();
  fmt::print("{}", page.take());
  for (auto [name, of] : {std::pair{"A", &a}, {"B", &b}}) {
    Page missing = page_for(stdout);
    analyze::add_facts(missing, of->reader->facts());
    if (missing.empty()) continue;
    fmt::print("\nof {}:\n{}", name, missing.take());
  }
  return 0;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* sub = app.add_subcommand("diff", "What changed from one trace to another");
  add_reading_footer(*sub, {"diff before.jsonl after.jsonl",
                            "diff A.0001.jsonl A.0002.jsonl --to B.0001.jsonl B.0002.jsonl"});
  sub->add_option("traces", flags->traces,
                  "Two traces, plain or .zst; with --to, the files of the first; -: stdin")
      ->type_name("A B")
      ->required();
  sub->add_option("--to", flags->to, "The files of the second trace, if a trace has several")
      ->type_name("B");
  sub->add_flag("--json", flags->json, "Print one JSON object, for programs");
  one_of(sub->add_option("--by", flags->by, "Group kernels by name or by launch configuration"),
         {"name", "configuration"})
      ->capture_default_str();
  add_top(*sub, flags->top, "Show at most N rows of each table");
  sub->callback([flags, &action] { action = [flags] { return print_diff(*flags); }; });
}

}  // namespace cudabpf::cli
