// The answer about how two traces differ.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analyze/columns.hpp"
#include "analyze/diff/difference.hpp"

namespace cudabpf::analyze {

namespace {

using Timed = Difference::Timed;
using Verdict = Judgement::Verdict;

void add_compared(Page& page, std::string title, const std::vector<Compared>& all, bool repeated) {
  if (all.empty()) return;
  std::size_t name_room = repeated ? 20 : 26;  // the spread of each side takes more
  Table table(std::move(title), {{"A"}, {"B"}, {"change"}, {"noise", 0, true}}, name_room);
  for (const Compared& of : all) {
    bool judged = repeated && of.noise != Noise::unknown && of.a.figure != of.b.figure;
    table.row(of.title(), {spread_text(of.a, of.unit()), spread_text(of.b, of.unit()),
                           change_text(of), judged ? std::string(to_string(of.noise)) : ""});
  }
  table.add_to(page);
}

Json compared_json(const std::vector<Compared>& all) {
  Json json = Json::array();
  for (const Compared& of : all) json.push_back(compared_json(of));
  return json;
}

std::string signed_time(std::int64_t ns) {
  if (!ns) return "=";
  return (ns < 0 ? "-" : "+") + human_time(static_cast<std::uint64_t>(std::llabs(ns)));
}

Json side_json(std::uint64_t count, const Durations& times) {
  if (!count) return nullptr;
  Json json = {
      {"count", count}, {"timed", times.count()}, {"total_us", microseconds(times.total())}};
  if (times.count()) {
    json["mean_us"] = microseconds(times.mean());
    json["p50_us"] = microseconds(times.quantile(0.5));
  }
  return json;
}

// Both sides' times, or those of one if the other has none. Where there is no room for all, means
// are left out first; in the table's other form, medians are.
constexpr unsigned MEANS = 5, MEDIANS = 3;
constexpr Column<Timed> TIMED_COLUMNS[] = {
    {{"name"}, As::text, [](auto& of) { return of.full.empty() ? of.name : of.full; }},
    {{"a"}, As::object, [](auto& of) { return side_json(of.count_a, of.a); }},
    {{"b"}, As::object, [](auto& of) { return side_json(of.count_b, of.b); }},
    {{"a.count", "count A", 2}, As::figure, its<&Timed::count_a>},
    {{"b.count", "count B", 2}, As::figure, its<&Timed::count_b>},
    {{"a.total_us", "total A", 4}, As::time, its<&Timed::a, total_of>},
    {{"b.total_us", "total B", 4}, As::time, its<&Timed::b, total_of>},
    {{"total_change_us"},
     As::object,
     [](auto& of) { return static_cast<double>(of.change()) / 1000; }},
    {{nullptr, "Δ total"},
     As::word,
     [](auto& of) { return of.a.count() && of.b.count() ? signed_time(of.change()) : ""; }},
    {{"a.mean_us", "mean A", MEANS, MEDIANS}, As::time, its<&Timed::a, mean_of>},
    {{"b.mean_us", "mean B", MEANS, MEDIANS}, As::time, its<&Timed::b, mean_of>},
    {{"a.p50_us", "p50 A", MEDIANS, MEANS}, As::time, its<&Timed::a, p50_of>},
    {{"b.p50_us", "p50 B", MEDIANS, MEANS}, As::time, its<&Timed::b, p50_of>},
    {{"p50"}, As::text, [](auto& of) { return to_string(of.judgement.verdict); }},
    {{"p50_change_percent"},
     As::percent,
     [](auto& of) {
       return known_if(of.judgement.verdict != Verdict::not_timed, of.judgement.change);
     }},
    {{nullptr, "Δ p50"}, As::word, [](auto& of) { return change_text(of.judgement); }},
};

// If long texts begin alike, shows what comes after that.
std::string shown(const std::string& text, std::string_view other, std::size_t width) {
  constexpr std::size_t KEPT = 12;
  if (text.empty()) return "-";
  if (std::max(text.size(), other.size()) <= width) return text;
  auto differ = std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first;
  auto alike = static_cast<std::size_t>(differ - text.begin());
  if (alike < KEPT || alike + KEPT < width) return shortened(text, width);
  std::size_t begin = alike - KEPT;  // not within a UTF-8 character
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) begin++;
  return "…" + shortened(text.substr(begin), width - 1);
}

void add_settings(Page& page, const std::vector<Setting>& settings) {
  if (settings.empty()) return;
  constexpr std::size_t WIDEST = 48;
  Table table("recorded differently", {{"A", 0, true}, {"B", 0, true}});
  std::size_t each = std::min<std::size_t>(WIDEST, (page.width() - 24) / 2);
  for (const auto& setting : settings)
    table.row(std::string(setting.what),
              {shown(setting.a, setting.b, each), shown(setting.b, setting.a, each)});
  table.add_to(page);
  for (const auto& setting : settings)
    if (!setting.so.empty()) page.paragraph(fmt::format("{}: {}.", setting.what, setting.so), 4);
}

void add_timed(Page& page, std::string title, const std::vector<Timed>& all, std::size_t at_most,
               std::string_view plural, bool rather_means = false) {
  if (all.empty()) return;
  Table table = table_of(std::move(title), TIMED_COLUMNS, 26, rather_means);
  add_rows(table, all, at_most, plural, cells_in(TIMED_COLUMNS, page));
  table.add_to(page);
}

template <typename Part>
std::vector<Timed> those(const std::vector<Timed>& all, Part part) {
  std::vector<Timed> some;
  for (const Timed& of : all)
    if (part(of)) some.push_back(of);
  return some;
}

std::string dimensions(const std::array<std::uint32_t, 3>& of) {
  return of[0] ? fmt::format("{}×{}×{}", of[0], of[1], of[2]) : "";
}

using ChangedKernel = Difference::Kernel;
constexpr auto change_of_runs = [](auto& of) {
  return of.a && of.b ? change_text(static_cast<double>(of.a), static_cast<double>(of.b)) : "";
};
template <auto Member>
constexpr auto if_configured =
    [](const ChangedKernel& of) { return known_if(of.launch.grid[0], of.launch.*Member); };

constexpr Column<ChangedKernel> CHANGED_KERNEL_COLUMNS[] = {
    {{"kernel"}, As::text, [](auto& of) { return of.full.empty() ? Json() : Json(of.full); }},
    {{"class", "class", 3},
     As::text,
     [](auto& of) { return shown_if(!of.full.empty(), to_string(of.kernel_class)); }},
    {{nullptr, "grid", 1}, As::word, [](auto& of) { return dimensions(of.launch.grid); }},
    {{nullptr, "block", 1}, As::word, [](auto& of) { return dimensions(of.launch.block); }},
    {{"a", "A"}, As::figure, its<&ChangedKernel::a>},
    {{"b", "B"}, As::figure, its<&ChangedKernel::b>},
    {{nullptr, "change", 2}, As::word, change_of_runs},
    {{"grid"}, As::dimensions, if_configured<&Kernels::Launch::grid>},
    {{"block"}, As::dimensions, if_configured<&Kernels::Launch::block>},
    {{"shared"}, As::bytes, if_configured<&Kernels::Launch::shared>},
};

void add_kernels(Page& page, const Difference& difference, std::size_t at_most) {
  constexpr std::size_t NAME_ROOM = 36;
  auto add = [&](std::string title, auto part) {
    std::vector<Difference::Kernel> some;
    for (const auto& kernel : difference.kernels)
      if (part(kernel)) some.push_back(kernel);
    if (some.empty()) return;
    Table table = table_of(std::move(title), CHANGED_KERNEL_COLUMNS, NAME_ROOM);
    add_rows(table, some, at_most, difference.by_configuration ? "configurations" : "kernels",
             cells_in(CHANGED_KERNEL_COLUMNS, page));
    table.add_to(page);
  };
  add("kernels only in A", [](const auto& of) { return !of.b; });
  add("kernels only in B", [](const auto& of) { return !of.a; });
  add("kernels, runs", [](const auto& of) { return of.a && of.b; });
}

void add_failures(Page& page, const std::vector<Difference::Failure>& failures,
                  std::size_t at_most) {
  if (failures.empty()) return;
  Table table("failed calls", {{"error", 0, true}, {"A"}, {"B"}});
  std::size_t shown = std::min(failures.size(), at_most);
  for (std::size_t i = 0; i < shown; i++)
    table.row(failures[i].name,
              {failures[i].error, human_count(failures[i].a), human_count(failures[i].b)});
  if (shown < failures.size()) table.row(fmt::format("{} more kinds", failures.size() - shown), {});
  table.add_to(page);
}

Json verdict_json(const DiffVerdict& verdict) {
  if (!verdict.by) return nullptr;
  constexpr std::string_view IDS[] = {"same", "not_certain", "not_comparable", "faster", "slower"};
  const Compared& by = *verdict.by;
  Json json = {{"id", IDS[static_cast<std::size_t>(verdict.is)]},
               {"title", verdict.title},
               {"text", verdict.text},
               {"measure", by.asked.name()},
               {"a_us", figure_json(by.unit(), by.a.figure)},
               {"b_us", figure_json(by.unit(), by.b.figure)}};
  if (by.a.figure > 0) json["times"] = by.b.figure / by.a.figure;
  return json;
}

Json begin_json(const std::optional<std::uint64_t>& begin) {
  return begin ? Json(microseconds(*begin)) : Json();
}

void add_rules(Page& page, const Difference& difference) {
  page.blank();
  if (!difference.shown.empty()) {
    page.paragraph(
        fmt::format("A and B are the medians of each side's traces (of errors, the maximum); ± is "
                    "how far a trace is from that. A change is beyond the noise if one side's "
                    "traces rank above the other's in a way that chance would produce at most once "
                    "in twenty times. Functions, kernels, failures and ioctls are those of {}, "
                    "whose durations are the middle ones.",
                    difference.shown),
        2);
    page.blank();
  }
  page.paragraph(
      fmt::format(
          "A median (p50) counts as changed if it differs by more than {:.0f} % and by more than "
          "{:.0f} standard errors. \"=\": it is the same; \"~\": no certain change, or one of "
          "less than 0.05 %; \"too few\": fewer than {} calls or iterations; \"3.7 ×\": times as "
          "much.{}",
          100 * Judgement::MIN_CHANGE, Judgement::STANDARD_ERRORS, Judgement::MIN_CALLS,
          difference.shown.empty() ? " To separate change from noise, compare several runs a side."
                                   : ""),
      2);
}

}  // namespace

Json difference_json(const Difference& difference) {
  Json json = {
      {"same", difference.none()},
      {"verdict", verdict_json(verdict_of(difference))},
      {"iterations_begin",
       {{"a_us", begin_json(difference.begins_a)}, {"b_us", begin_json(difference.begins_b)}}},
      {"settings", Json::array()}};
  for (const auto& of : difference.settings)
    json["settings"].push_back({{"what", of.what}, {"a", of.a}, {"b", of.b}, {"so", of.so}});
  json["totals"] = compared_json(difference.totals);
  json["iterations"] = compared_json(difference.iterations);
  json["on_iterations"] = difference.on_iterations;
  json["phases"] = compared_json(difference.phases);
  json["functions"] = list_of(difference.functions, TIMED_COLUMNS);
  json["kernels"] = list_of(difference.kernels, CHANGED_KERNEL_COLUMNS);
  if (!difference.gpu_kernels.empty())
    json["gpu_kernels"] = list_of(difference.gpu_kernels, TIMED_COLUMNS);
  json["ioctls"] = list_of(difference.ioctls, TIMED_COLUMNS);
  json["failures"] = Json::array();
  for (const auto& of : difference.failures)
    json["failures"].push_back({{"name", of.name}, {"error", of.error}, {"a", of.a}, {"b", of.b}});
  return json;
}

void add_difference(Page& page, const Difference& difference, std::size_t at_most) {
  bool none = difference.none();
  if (none) {
    page.blank();
    page.paragraph(
        fmt::format("No difference: settings, totals, iterations, phases, {} with their counts and "
                    "times, kernels and failures are the same in both.",
                    count_of(difference.functions.size(), "function", "functions")),
        0);
  }
  if (DiffVerdict verdict = verdict_of(difference); verdict.by && !none) {
    page.blank();
    page.statement(verdict.title, verdict.text);
  }
  add_settings(page, difference.settings);
  bool repeated = !difference.shown.empty();
  if (!none) {
    add_compared(page, "iterations", difference.iterations, repeated);
    for (const std::string& note : difference.on_iterations) page.paragraph(note + ".", 4);
  }
  add_compared(page, "totals", difference.totals, repeated);
  if (none) return;
  add_compared(page, "phases", difference.phases, repeated);
  const auto& functions = difference.functions;
  add_timed(page, "functions", those(functions, [](auto& of) { return of.count_a && of.count_b; }),
            at_most, "functions");
  add_timed(page, "functions only in A", those(functions, [](auto& of) { return !of.count_b; }),
            at_most, "functions");
  add_timed(page, "functions only in B", those(functions, [](auto& of) { return !of.count_a; }),
            at_most, "functions");
  add_kernels(page, difference, at_most);
  add_timed(page, "kernels, GPU time", difference.gpu_kernels, at_most, "kernels", true);
  add_failures(page, difference.failures, at_most);
  add_timed(page, "ioctls by group", difference.ioctls, at_most, "groups");
  add_rules(page, difference);
}

}  // namespace cudabpf::analyze
