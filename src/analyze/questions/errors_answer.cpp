// The answer about what went wrong.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "analyze/questions/errors.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

std::string who(std::uint32_t pid, std::uint32_t tid) {
  return pid == tid || !tid ? fmt::format("{}", pid) : fmt::format("{}/{}", pid, tid);
}

std::string how_it_ended(const Errors::Exit& exit) {
  if (!exit.signal) return fmt::format("exit status {}", exit.code);
  const char* name = ::sigabbrev_np(static_cast<int>(exit.signal));
  return name ? fmt::format("signal {} (SIG{})", exit.signal, name)
              : fmt::format("signal {}", exit.signal);
}

std::string call_text(const std::optional<Errors::LastCall>& call, const Names& names) {
  if (!call) return "";
  std::string text(names.text(call->name));
  if (call->error) text += " " + std::string(names.text(call->error));
  if (call->unfinished) text += ", inside it";
  return text;
}

Json failure_json(const Errors::Failure& failure) {
  Json example = {{"ts", failure.example.ts}};
  if (failure.example.id) example["id"] = failure.example.id;
  if (failure.example.pid) example["pid"] = failure.example.pid;
  if (failure.example.tid) example["tid"] = failure.example.tid;
  if (!failure.example.text.empty()) example["text"] = failure.example.text;
  Json json = {{"what", failure.name},      {"error", failure.error},  {"count", failure.count},
               {"first_ts", failure.first}, {"last_ts", failure.last}, {"example", example}};
  if (auto meaning = meaning_of(failure.name, failure.error).text; !meaning.empty())
    json["meaning"] = meaning;
  return json;
}

Json open_json(const Errors::Open& open) {
  Json json = {{"what", open.what}, {"ts", open.ts},   {"open_us", microseconds(open.open_for)},
               {"pid", open.pid},   {"tid", open.tid}, {"process_ended", open.process_ended}};
  if (open.id) json["id"] = open.id;
  if (open.parent) json[open.id ? "parent" : "call"] = open.parent;
  if (!open.args.empty()) json["args"] = open.args;
  return json;
}

Json exit_json(const Errors::Exit& exit, const Names& names) {
  auto call = [&](const std::optional<Errors::LastCall>& of) {
    if (!of) return Json();
    Json json = {{"id", of->id}, {"name", names.text(of->name)}, {"ts", of->ts}};
    if (of->error) json["error"] = names.text(of->error);
    if (of->unfinished) json["unfinished"] = true;
    return json;
  };
  Json json = {{"pid", exit.pid}, {"comm", exit.comm}, {"ts", exit.ts}};
  if (exit.signal)
    json["signal"] = exit.signal;
  else
    json["exit_code"] = exit.code;
  json["last_call"] = call(exit.last_call);
  json["last_failure"] = call(exit.last_failure);
  return json;
}

constexpr std::size_t EXAMPLE_WIDTH = 44;

void add_failures(Page& page, std::string title, const std::vector<Errors::Failure>& failures,
                  std::size_t at_most) {
  if (failures.empty()) return;
  Table table(std::move(title), {{"error", 0, true},
                                 {"count"},
                                 {"first", 2},
                                 {"last", 3},
                                 {"by", 4, true},
                                 {"example", 5, true}});
  add_rows(table, failures, at_most, "kinds",
           [&](const Errors::Failure& failure) -> std::vector<std::string> {
             const Errors::Example& example = failure.example;
             std::string id = example.id ? fmt::format("id {} ", example.id) : "";
             return {failure.error,
                     human_count(failure.count),
                     page.at(failure.first),
                     failure.count > 1 ? page.at(failure.last) : "",
                     example.pid ? who(example.pid, example.tid) : "",
                     shortened(id + example.text, EXAMPLE_WIDTH)};
           });
  table.add_to(page);
  std::set<std::string_view> told;
  for (const Errors::Failure& failure : failures)
    if (auto meaning = meaning_of(failure.name, failure.error).text;
        !meaning.empty() && told.insert(meaning).second)
      page.paragraph(fmt::format("{}: {}.", failure.error, meaning), 4);
}

std::vector<Errors::Failure> of_weight(const std::vector<Errors::Failure>& all, Weight weight) {
  std::vector<Errors::Failure> some;
  for (const Errors::Failure& failure : all)
    if (failure.weight == weight) some.push_back(failure);
  return some;
}

// ", 16 of them expected"
std::string usual_text(const Errors::Answer& answer) {
  if (!answer.usual_failures) return "";
  if (answer.usual_failures == answer.failed_calls) return ", all expected";
  return fmt::format(", {} of them expected", with_commas(answer.usual_failures));
}

// In a line a reason: they are no table of errors.
void add_usual(Page& page, const Errors::Answer& answer) {
  std::vector<FailedCalls> failed;
  for (const Errors::Failure& failure : answer.failures)
    failed.push_back({failure.name, failure.error, failure.count});
  auto sentences = usual_failures(failed);
  if (!sentences.empty()) page.blank();
  for (const std::string& sentence : sentences) page.paragraph(sentence, 0);
}

void add_open(Page& page, const Errors::Answer& answer, std::size_t at_most) {
  if (answer.open.empty()) return;
  Table table("did not return", {{"open for"},
                                 {"since"},
                                 {"by", 0, true},
                                 {"until", 1, true},
                                 {"inside", 2, true},
                                 {"arguments", 3, true}});
  std::size_t shown = std::min(answer.open.size(), at_most);
  for (std::size_t i = 0; i < shown; i++) {
    const Errors::Open& open = answer.open[i];
    table.row(open.what, {human_time(open.open_for), page.at(open.ts), who(open.pid, open.tid),
                          open.process_ended ? "its process ended" : "the trace ended",
                          open.parent ? fmt::format("call {}", open.parent) : "",
                          shortened(open.args, EXAMPLE_WIDTH)});
  }
  if (shown < answer.all_open)
    table.row(fmt::format("{} more", with_commas(answer.all_open - shown)), {});
  table.add_to(page);
}

void add_exits(Page& page, const Errors::Answer& answer, const Names& names, std::size_t at_most) {
  const auto& exits = answer.exits;
  if (exits.empty()) return;
  Table table("processes that ended badly",
              {{"how", 0, true}, {"when"}, {"last call", 1, true}, {"last failure", 2, true}});
  std::size_t shown = std::min(exits.size(), at_most);
  for (std::size_t i = 0; i < shown; i++) {
    const Errors::Exit& exit = exits[i];
    table.row(fmt::format("{} ({})", exit.comm, exit.pid),
              {how_it_ended(exit), page.at(exit.ts), call_text(exit.last_call, names),
               call_text(exit.last_failure, names)});
  }
  if (shown < answer.bad_exits)
    table.row(fmt::format("{} more", with_commas(answer.bad_exits - shown)), {});
  table.add_to(page);
}

void add_events(Page& page, const Errors::Answer& answer) {
  if (answer.events.empty()) return;
  Table table("one by one", {{"at"}, {"error", 0, true}, {"by", 2, true}, {"id", 1}});
  for (const Errors::Event& event : answer.events)
    table.row(event.what,
              {page.at(event.ts), event.error, event.pid ? who(event.pid, event.tid) : "",
               event.id ? std::to_string(event.id) : ""});
  table.add_to(page);
  if (answer.events_left_out)
    page.line(fmt::format("  {} more", with_commas(answer.events_left_out)));
}

}  // namespace

Json errors_json(const Errors::Answer& answer, const Names& names) {
  auto list = [](const auto& all, auto to_json) {
    Json json = Json::array();
    for (const auto& one : all) json.push_back(to_json(one));
    return json;
  };
  Json json = {{"calls", answer.calls},
               {"failed_calls", answer.failed_calls},
               {"usual_failures", answer.usual_failures},
               {"without_result", answer.without_result},
               {"failed_operations", answer.failed_operations},
               {"unfinished_calls", answer.calls_open},
               {"failures", list(answer.failures,
                                 [](const Errors::Failure& failure) {
                                   Json one = failure_json(failure);
                                   one["weight"] = to_string(failure.weight);
                                   one["benign"] = failure.weight == Weight::usual;
                                   return one;
                                 })},
               {"operations", list(answer.refusals, failure_json)},
               {"gpu_errors", list(answer.gpu_errors, failure_json)},
               {"unfinished", list(answer.open, open_json)},
               {"read_faults", list(answer.read_faults, failure_json)},
               {"processes", list(answer.exits, [&](const Errors::Exit& exit) {
                  return exit_json(exit, names);
                })}};
  if (answer.all_open > answer.open.size())
    json["unfinished_left_out"] = answer.all_open - answer.open.size();
  if (answer.bad_exits > answer.exits.size())
    json["processes_left_out"] = answer.bad_exits - answer.exits.size();
  if (!answer.events.empty()) {
    json["events"] = list(answer.events, [](const Errors::Event& event) {
      return Json{{"ts", event.ts},   {"what", event.what}, {"error", event.error},
                  {"pid", event.pid}, {"tid", event.tid},   {"id", event.id}};
    });
    json["events_left_out"] = answer.events_left_out;
  }
  return json;
}

void add_errors(Page& page, const Errors::Answer& answer, const Names& names, std::size_t at_most) {
  std::uint64_t told = answer.calls - std::min(answer.calls, answer.without_result);
  std::uint64_t unknown =
      answer.without_result - std::min(answer.without_result, answer.calls_open);
  if (told)
    page.paragraph(fmt::format("{} of {} failed{}.",
                               answer.failed_calls ? with_commas(answer.failed_calls) : "None",
                               count_of(told, "call", "calls"), usual_text(answer)),
                   0);
  if (unknown)
    page.paragraph(fmt::format("Whether {} failed is not known: the trace lacks their results.",
                               told ? count_of(unknown, "other", "others")
                                    : count_of(unknown, "call", "calls")),
                   0);
  // The gravest first.
  add_failures(page, "errors of GPUs", answer.gpu_errors, at_most);
  add_failures(page, "failures after which later calls fail",
               of_weight(answer.failures, Weight::grave), at_most);
  add_failures(page, "calls that failed", of_weight(answer.failures, Weight::failure), at_most);
  add_open(page, answer, at_most);
  add_exits(page, answer, names, at_most);
  add_failures(page, "refused by the driver", answer.refusals, at_most);
  add_failures(page, "arguments that could not be read", answer.read_faults, at_most);
  add_usual(page, answer);
  add_events(page, answer);
}

}  // namespace cudabpf::analyze
