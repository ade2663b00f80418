// cudabpf diff: what changed from one trace to another.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/diff/conditions.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"
#include "cli/traces_apart.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

// Each trace is read alone, but its figures are kept: there is a limit.
constexpr std::size_t MAX_TRACES = 32;

struct DiffFlags {
  std::vector<std::string> traces, to, conditions;
  analyze::Kernels::By by = analyze::Kernels::By::name;
  Top top;
  bool json = false;
};

// Each side has one trace or several.
struct Sides {
  std::vector<Paths> a, b;
};

Result<Sides> sides_of(const DiffFlags& flags) {
  Paths a = flags.traces, b = flags.to;
  if (b.empty()) {
    if (a.size() != 2)
      return Error{fmt::format("diff takes two traces, not {}", a.size()),
                   "where a side has several: cudabpf diff A1.jsonl A2.jsonl -- B1.jsonl B2.jsonl",
                   exit_code::USAGE};
    b = {a.back()};
    a.pop_back();
  }
  if (std::count(a.begin(), a.end(), "-") + std::count(b.begin(), b.end(), "-") > 1)
    return Error{"standard input can be one of the traces, not two", {}, exit_code::USAGE};
  auto of_a = TRY(traces_of(a, TracesAre::runs_of_one));
  auto of_b = TRY(traces_of(b, TracesAre::runs_of_one));
  for (const auto& side : {of_a, of_b})
    if (side.size() > MAX_TRACES)
      return Error{fmt::format("{} traces on one side: at most {}", side.size(), MAX_TRACES),
                   {},
                   exit_code::USAGE};
  return Sides{std::move(of_a), std::move(of_b)};
}

// A trace and its measures; the reader owns the names.
struct Measured {
  std::unique_ptr<analyze::TraceReader> reader;
  std::unique_ptr<analyze::Measures> measures;
};

Result<Measured> measure(const Paths& paths) {
  Measured measured;
  measured.reader = TRY(open_trace(paths));
  measured.measures = std::make_unique<analyze::Measures>(measured.reader->names());
  TRY(analyze::analyze(*measured.reader, {measured.measures.get()}));
  return measured;
}

// When and where it was taken.
void add_taken(Page& page, const analyze::TraceFacts& facts) {
  Moments moments(facts.header.began(), Moments::Zone::none);
  std::string taken = analyze::heading_of(facts, moments);
  if (!taken.empty()) page.line("   " + shortened(printable(taken), page.width() - 3));
}

struct MeasuredSide {
  char letter;
  analyze::DiffSide side;
  Measured shown;

  std::string name(std::size_t trace) const { return analyze::name_of(letter, side, trace); }
};

Result<MeasuredSide> measure_side(char letter, const std::vector<Paths>& traces,
                                  const std::vector<analyze::MeasurePart>& asked) {
  MeasuredSide measured{letter, {}, {}};
  for (const Paths& paths : traces) {
    measured.shown = {};  // two large ones need not be in memory at once
    measured.shown = TRY(measure(paths));
    measured.side.traces.push_back(figures_of(*measured.shown.measures, asked));
  }
  std::size_t middle = analyze::middle_trace(measured.side.traces);
  if (middle + 1 != traces.size()) measured.shown = TRY(measure(traces[middle]));
  measured.side.shown = measured.shown.measures.get();
  measured.side.shown_at = middle;
  return measured;
}

analyze::Json facts_of(const MeasuredSide& side) {
  analyze::Json all = analyze::Json::array();
  for (const auto& trace : side.side.traces) all.push_back(analyze::facts_json(trace.facts));
  return all;
}

using Outcomes = std::vector<analyze::Outcome>;

analyze::Json json_of(const analyze::Difference& difference, const MeasuredSide& a,
                      const MeasuredSide& b, const Outcomes& outcomes, const Top& top) {
  analyze::Json json = {{"a", analyze::facts_json(a.shown.reader->facts())},
                        {"b", analyze::facts_json(b.shown.reader->facts())}};
  if (!difference.shown.empty()) json["traces"] = {{"a", facts_of(a)}, {"b", facts_of(b)}};
  json.update(difference_json(difference));
  if (!outcomes.empty()) json["conditions"] = outcomes_json(outcomes);
  for (const char* list : {"functions", "kernels", "ioctls", "failures"}) top.cut(json, list);
  return json;
}

void add_names(Page& page, const MeasuredSide& side) {
  for (std::size_t i = 0; i < side.side.traces.size(); i++) {
    std::string names;
    for (const std::string& path : side.side.traces[i].facts.paths)
      names += (names.empty() ? "" : ", ") + analyze::input_name(path);
    page.paragraph(side.name(i) + ": " + names, 0);
    add_taken(page, side.side.traces[i].facts);
  }
  for (std::size_t i = 0; i < side.side.traces.size(); i++)
    if (!side.side.traces[i].facts.calls) page.line(side.name(i) + " holds no calls.");
}

std::string missing_of(const MeasuredSide& side) {
  std::string text;
  for (std::size_t i = 0; i < side.side.traces.size(); i++) {
    Page missing = page_for(stdout);
    analyze::add_facts(missing, side.side.traces[i].facts);
    if (!missing.empty()) text += fmt::format("\nof {}:\n{}", side.name(i), missing.take());
  }
  return text;
}

Result<int> print_diff(const DiffFlags& flags) {
  std::vector<analyze::Condition> conditions;
  for (const std::string& text : flags.conditions)
    conditions.push_back(TRY(analyze::parse_condition(text)));
  auto sides = TRY(sides_of(flags));
  auto asked = asked_of(conditions);
  auto a = TRY(measure_side('A', sides.a, asked));
  auto b = TRY(measure_side('B', sides.b, asked));
  analyze::Difference difference = analyze::difference(a.side, b.side, flags.by);
  Outcomes outcomes = judge(conditions, a.side, b.side);
  if (flags.json) {
    print_json(json_of(difference, a, b, outcomes, flags.top), stdout);
    return status_of(outcomes);
  }
  Page page = page_for(stdout);
  add_names(page, a);
  add_names(page, b);
  add_difference(page, difference, flags.top.rows);
  page.say_left_out();
  std::string text = page.take() + missing_of(a) + missing_of(b);
  if (!outcomes.empty()) {
    Page judged = page_for(stdout);
    add_outcomes(judged, outcomes);
    judged.say_left_out();
    text += "\n" + judged.take();
  }
  show(text, stdout);
  return outcomes.empty() ? exit_code::OK : status_of(outcomes);
}

// Below --help: what may be asked of --fail-if, and how diff then ends.
std::string about_conditions() {
  std::string measures;
  for (const analyze::Measure& measure : analyze::all_measures()) {
    measures += (measures.empty() ? "" : ", ") + std::string(measure.name);
    if (measure.part_is.empty()) continue;
    std::string part(measure.part_is);
    std::transform(part.begin(), part.end(), part.begin(), ::toupper);
    measures += measure.whole ? "[:" + part + "]" : ":" + part;
  }
  return fmt::format(
      "\nWith --fail-if: {} a condition holds; {} none does, and one could not be judged.\n\n"
      "--fail-if takes MEASURE > or < [+|-]NUMBER, and then % of A or ns, us, ms, s, B, KiB, MiB, "
      "GiB, points (of a share) or nothing (of a count). Measures: {}.\n",
      exit_code::CONDITION_HOLDS, exit_code::CONDITION_UNKNOWN, measures);
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  using enum analyze::Kernels::By;
  auto [sub, flags] = add_command<DiffFlags>(app, action, "diff",
                                             "What changed from one trace to another", print_diff);
  add_reading_footer(sub, {"diff traces/h200-gpt2.jsonl.zst traces/h200-transformer.jsonl.zst",
                           "diff traces/h200-gpt2.jsonl.zst traces/h200-transformer.jsonl.zst "
                           "--fail-if 'launches > +5 %'   for CI",
                           "diff traces/h200-gpt2.jsonl.zst traces/h200-two-gpus.jsonl.zst -- "
                           "traces/h200-transformer.jsonl.zst   several runs a side"});
  sub.footer(sub.get_footer() + about_conditions());
  sub.add_option("traces", flags.traces,
                 "Two traces, plain or .zst; or all of one side, then -- and all of the other: "
                 "runs of one program, or files of a rotated trace; -: stdin")
      ->type_name("A B")
      ->required();
  sub.add_option("--to", flags.to, "The traces of the other side, as after --")->type_name("B");
  sub.add_option("--fail-if", flags.conditions,
                 "Fail if this condition holds, such as 'launches > +5 %'; may be repeated")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
  add_json(sub, flags.json);
  one_of(sub, "--by", flags.by, {{"name", name}, {"configuration", configuration}},
         "Group kernels by name or by launch configuration")
      ->capture_default_str();
  add_top(sub, flags.top, 15, "Show at most N rows of each table");
}

}  // namespace cudabpf::cli
