// The answer about what went wrong.
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "analyze/columns.hpp"
#include "analyze/questions/errors.hpp"

namespace cudabpf::analyze {

namespace {

std::string who(std::uint32_t pid, std::uint32_t tid) {
  return pid == tid || !tid ? fmt::format("{}", pid) : fmt::format("{}/{}", pid, tid);
}

constexpr auto how_it_ended = [](const Errors::Exit& exit) {
  if (!exit.signal) return fmt::format("exit status {}", exit.code);
  const char* name = ::sigabbrev_np(static_cast<int>(exit.signal));
  return name ? fmt::format("signal {} (SIG{})", exit.signal, name)
              : fmt::format("signal {}", exit.signal);
};

std::string call_text(const std::optional<Errors::LastCall>& call, const Names& names) {
  if (!call) return "";
  std::string text(names.text(call->name));
  if (call->error) text += " " + std::string(names.text(call->error));
  if (call->unfinished) text += ", inside it";
  return text;
}

Json example_json(const Errors::Failure& failure) {
  const Errors::Example& example = failure.example;
  Json json = {{"ts", example.ts}};
  if (example.id) json["id"] = example.id;
  if (example.pid) json["pid"] = example.pid;
  if (example.tid) json["tid"] = example.tid;
  if (!example.text.empty()) json["text"] = example.text;
  return json;
}

Json last_call_json(const std::optional<Errors::LastCall>& call, const Names& names) {
  if (!call) return nullptr;
  Json json = {{"id", call->id}, {"name", names.text(call->name)}, {"ts", call->ts}};
  if (call->error) json["error"] = names.text(call->error);
  if (call->unfinished) json["unfinished"] = true;
  return json;
}

constexpr std::size_t EXAMPLE_WIDTH = 44;

constexpr auto by_whom = [](auto& of) { return of.pid ? who(of.pid, of.tid) : ""; };

// The first process and thread, and how many other processes.
std::string by_how_many(const Errors::Failure& failure) {
  std::string first = by_whom(failure.example);
  std::size_t processes = failure.processes.size();
  if (processes < 2) return first;
  return fmt::format("{} and {}{}", first, processes == Errors::MAX_PROCESSES ? "at least " : "",
                     count_of(processes - 1, "other", "others"));
}

template <bool Complete>
constexpr auto process_count = [](const Errors::Failure& of) {
  std::size_t count = of.processes.size();
  return known_if(count && (count < Errors::MAX_PROCESSES) == Complete, count);
};

constexpr Column<Errors::Failure> FAILURE_COLUMNS[] = {
    {{"what"}, As::text, its<&Errors::Failure::name>, {1, "what", WIDE}},
    {{"error", "error"}, As::text, its<&Errors::Failure::error>, {2, "error"}},
    {{"count", "count"}, As::count, its<&Errors::Failure::count>, {3, "times"}},
    {{"first_ts", "first", 2}, As::moment, its<&Errors::Failure::first>, {4, "first"}},
    {{"last_ts", "last", 3}, As::moment, [](auto& of) { return shown_if(of.count > 1, of.last); }},
    {{nullptr, "by", 4}, As::text, its<by_how_many>},
    {{"processes"}, As::number, process_count<true>},
    {{"processes_at_least"}, As::number, process_count<false>},
    {{"example"}, As::object, its<example_json>},
    {{nullptr, "example", 5},
     As::text,
     [](auto& of) {
       std::string id = of.example.id ? fmt::format("id {} ", of.example.id) : "";
       return shortened(id + of.example.text, EXAMPLE_WIDTH);
     }},
    {{"meaning"},
     As::text,
     [](auto& of) {
       auto meaning = meaning_of(of.name, of.error).text;
       return known_if(!meaning.empty(), meaning);
     },
     {5, "meaning", WIDE}},
};

constexpr Column<Errors::Open> OPEN_COLUMNS[] = {
    {{"what"}, As::text, its<&Errors::Open::what>, {1, "what"}},
    {{"ts"}, As::moment, its<&Errors::Open::ts>, {3, "began"}},
    {{"open_us", "open for"}, As::time, its<&Errors::Open::open_for>, {2, "open for"}},
    {{nullptr, "since"}, As::moment, its<&Errors::Open::ts>},
    {{"pid"}, As::number, its<&Errors::Open::pid>, {4, "process"}},
    {{"tid"}, As::number, its<&Errors::Open::tid>, {5, "thread"}},
    {{nullptr, "by"}, As::text, [](auto& of) { return who(of.pid, of.tid); }},
    {{"process_ended"}, As::object, its<&Errors::Open::process_ended>},
    {{nullptr, "until", 1},
     As::text,
     [](auto& of) { return of.process_ended ? "its process ended" : "the trace ended"; }},
    {{"id"}, As::number, its<&Errors::Open::id, if_any>},
    {{"parent"}, As::number, [](auto& of) { return known_if(of.id && of.parent, of.parent); }},
    {{"call"}, As::number, [](auto& of) { return known_if(!of.id && of.parent, of.parent); }},
    {{nullptr, "inside", 2},
     As::text,
     [](auto& of) { return of.parent ? fmt::format("call {}", of.parent) : ""; }},
    {{"args"}, As::text, its<&Errors::Open::args, if_any>},
    {{nullptr, "arguments", 3},
     As::text,
     [](auto& of) { return shortened(of.args, EXAMPLE_WIDTH); }},
};

template <auto Call>
constexpr auto call_in_json =
    [](const Errors::Exit& of, const Names* names) { return last_call_json(of.*Call, *names); };
template <auto Call>
constexpr auto call_in_table =
    [](const Errors::Exit& of, const Names* names) { return call_text(of.*Call, *names); };

constexpr Column<Errors::Exit, const Names*> EXIT_COLUMNS[] = {
    {{"pid"}, As::number, its<&Errors::Exit::pid>, {1, "process"}},
    {{"comm"}, As::text, its<&Errors::Exit::comm>, {2, "name"}},
    {{nullptr, "how"}, As::text, how_it_ended},
    {{"ts", "when"}, As::moment, its<&Errors::Exit::ts>, {4, "when"}},
    {{"signal"}, As::number, its<&Errors::Exit::signal, if_any>},
    {{"exit_code"}, As::number, [](auto& of) { return known_if(!of.signal, of.code); }, {3, "how"}},
    {{"last_call"}, As::object, call_in_json<&Errors::Exit::last_call>},
    {{nullptr, "last call", 1}, As::text, call_in_table<&Errors::Exit::last_call>},
    {{"last_failure"}, As::object, call_in_json<&Errors::Exit::last_failure>},
    {{nullptr, "last failure", 2}, As::text, call_in_table<&Errors::Exit::last_failure>},
};

constexpr Column<Errors::Event> EVENT_COLUMNS[] = {
    {{"ts", "at"}, As::moment, its<&Errors::Event::ts>},
    {{"what"}, As::text, its<&Errors::Event::what>},
    {{"error", "error"}, As::text, its<&Errors::Event::error>},
    {{"pid"}, As::number, its<&Errors::Event::pid>},
    {{"tid"}, As::number, its<&Errors::Event::tid>},
    {{nullptr, "by", 2}, As::text, by_whom},
    {{"id", "id", 1}, As::number, its<&Errors::Event::id, shown_if_any>},
};

void add_failures(Page& page, std::string title, const std::vector<Errors::Failure>& failures,
                  std::size_t at_most) {
  if (failures.empty()) return;
  Table table = table_of(std::move(title), FAILURE_COLUMNS);
  add_rows(table, failures, at_most, "kinds", cells_in(FAILURE_COLUMNS, page));
  table.add_to(page);
  std::set<std::string_view> said;
  for (const Errors::Failure& failure : failures)
    if (auto meaning = meaning_of(failure.name, failure.error).text;
        !meaning.empty() && said.insert(meaning).second)
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

// One line per reason: expected failures are no errors, so they get no table.
void add_usual(Page& page, const Errors::Answer& answer) {
  std::vector<FailedCalls> failed;
  for (const Errors::Failure& failure : answer.failures)
    failed.push_back({failure.name, failure.error, failure.count});
  auto sentences = usual_failures(failed);
  if (!sentences.empty()) page.blank();
  for (const std::string& sentence : sentences) page.paragraph(sentence, 0);
}

// As many rows as are wanted, and how many more there are.
template <typename Rows, typename Name, typename Cells>
void add_some(Page& page, Table table, const Rows& rows, std::uint64_t all, std::size_t at_most,
              Name name_of, Cells cells) {
  if (rows.empty()) return;
  std::size_t shown = std::min(rows.size(), at_most);
  for (std::size_t i = 0; i < shown; i++) table.row(name_of(rows[i]), cells(rows[i]));
  if (shown < all) table.row(fmt::format("{} more", with_commas(all - shown)), {});
  table.add_to(page);
}

void add_events(Page& page, const Errors::Answer& answer) {
  if (answer.events.empty()) return;
  Table table = table_of("one by one", EVENT_COLUMNS);
  auto cells = cells_in(EVENT_COLUMNS, page);
  for (const Errors::Event& event : answer.events) table.row(event.what, cells(event));
  table.add_to(page);
  if (answer.events_left_out)
    page.line(fmt::format("  {} more", with_commas(answer.events_left_out)));
}

}  // namespace

Json errors_json(const Errors::Answer& answer, const Memory& memory) {
  Json failures = list_of(answer.failures, FAILURE_COLUMNS);
  for (std::size_t i = 0; i < failures.size(); i++) {
    failures[i]["weight"] = to_string(answer.failures[i].weight);
    failures[i]["benign"] = answer.failures[i].weight == Weight::usual;
  }
  Json json = {{"calls", answer.calls},
               {"failed_calls", answer.failed_calls},
               {"usual_failures", answer.usual_failures},
               {"without_result", answer.without_result},
               {"failed_operations", answer.failed_operations},
               {"unfinished_calls", answer.calls_open},
               {"failures", std::move(failures)},
               {"operations", list_of(answer.refusals, FAILURE_COLUMNS)},
               {"gpu_errors", list_of(answer.gpu_errors, FAILURE_COLUMNS)},
               {"unfinished", list_of(answer.open, OPEN_COLUMNS)},
               {"read_faults", list_of(answer.read_faults, FAILURE_COLUMNS)},
               {"processes", list_of(answer.exits, EXIT_COLUMNS, &memory.names())},
               {"ran_out", out_of_memory_json(memory)}};
  if (answer.all_open > answer.open.size())
    json["unfinished_left_out"] = answer.all_open - answer.open.size();
  if (answer.bad_exits > answer.exits.size())
    json["processes_left_out"] = answer.bad_exits - answer.exits.size();
  if (!answer.events.empty()) {
    json["events"] = list_of(answer.events, EVENT_COLUMNS);
    json["events_left_out"] = answer.events_left_out;
  }
  return json;
}

Json errors_columns() {
  return {{"failures", page_columns(FAILURE_COLUMNS)},
          {"unfinished", page_columns(OPEN_COLUMNS)},
          {"exits", page_columns(EXIT_COLUMNS)}};
}

void add_errors(Page& page, const Errors::Answer& answer, const Memory& memory,
                std::size_t at_most) {
  std::uint64_t known = answer.calls - std::min(answer.calls, answer.without_result);
  std::uint64_t unknown =
      answer.without_result - std::min(answer.without_result, answer.calls_open);
  if (known)
    page.paragraph(fmt::format("{} of {} failed{}.",
                               answer.failed_calls ? with_commas(answer.failed_calls) : "None",
                               count_of(known, "call", "calls"), usual_text(answer)),
                   0);
  if (unknown)
    page.paragraph(fmt::format("Whether {} failed is not known: the trace lacks their results.",
                               known ? count_of(unknown, "other", "others")
                                     : count_of(unknown, "call", "calls")),
                   0);
  // The gravest first.
  add_failures(page, "errors of GPUs", answer.gpu_errors, at_most);
  add_failures(page, "failures after which later calls fail",
               of_weight(answer.failures, Weight::grave), at_most);
  add_failures(page, "calls that failed", of_weight(answer.failures, Weight::failure), at_most);
  add_some(page, table_of("did not return", OPEN_COLUMNS), answer.open, answer.all_open, at_most,
           its<&Errors::Open::what>, cells_in(OPEN_COLUMNS, page));
  add_some(
      page, table_of("processes that ended badly", EXIT_COLUMNS), answer.exits, answer.bad_exits,
      at_most, [](auto& of) { return fmt::format("{} ({})", of.comm, of.pid); },
      cells_in(EXIT_COLUMNS, page, &memory.names()));
  add_failures(page, "refused by the driver", answer.refusals, at_most);
  add_failures(page, "arguments that could not be read", answer.read_faults, at_most);
  add_usual(page, answer);
  add_events(page, answer);
  add_out_of_memory(page, memory);
}

}  // namespace cudabpf::analyze
