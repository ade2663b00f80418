#include "analyze/report/report.hpp"

#include <array>
#include <initializer_list>
#include <string_view>

#include "analyze/energy/energy.hpp"
#include "analyze/energy/gaps_answer.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/questions/calls.hpp"
#include "analyze/questions/errors.hpp"
#include "analyze/questions/ioctls.hpp"
#include "analyze/questions/kernels.hpp"
#include "analyze/report/packed.hpp"
#include "analyze/report/report_data.hpp"
#include "analyze/report/report_timeline.hpp"
#include "analyze/stacks/stack_tree.hpp"
#include "analyze/summary/summary.hpp"
#include "util/text/markup.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::string_view PAGE =
#include "report_page.inc"
    ;
constexpr std::size_t MAX_TEXT = 4096, MAX_ROWS = 2000, MAX_GAPS = 200;

// What the page shows of other people's text is short and printable; what it says of long lists is
// how much of them is missing.
void make_fit(Json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    text = short_text(text, MAX_TEXT);
  }
  if (json.is_array() || json.is_object())
    for (Json& part : json) make_fit(part);
  if (!json.is_object()) return;
  Json left_out = Json::object();
  for (auto& [name, part] : json.items())
    if (part.is_array() && part.size() > MAX_ROWS && part.front().is_object()) {
      left_out[name + "_left_out"] = part.size() - MAX_ROWS;
      part.erase(part.begin() + MAX_ROWS, part.end());
    }
  json.update(left_out);
}

// Word by word; null: none was started, or none may be named.
Json command_in(const TraceHeader& header) {
  if (!header.command) return nullptr;
  Json words = *header.command;
  if (words.size() > MAX_ROWS) words.erase(words.begin() + MAX_ROWS, words.end());
  return words;
}

std::string missing_text(const TraceFacts& facts) {
  constexpr unsigned COLUMNS = 100;
  Page page(
      Terminal{.is_terminal = false, .color = false, .width = COLUMNS, .height = 0, .utf8 = true});
  add_facts(page, facts);
  return page.take();
}

// How the page draws the rows of these answers.
Json columns_json() {
  Json all = {{"functions", calls_columns()}, {"ioctls", ioctls_columns()},
              {"idle", gaps_columns()},       {"gpu_idle", gpu_gaps_columns()},
              {"blocks", memory_columns()},   {"steps", steps_columns()},
              {"lines", stack_line_columns()}};
  all.update(kernels_columns());
  all.update(errors_columns());
  return all;
}

void put_page(ByteStream& out, std::string_view title, const Json& data,
              std::initializer_list<std::string> timelines) {
  std::string_view rest = PAGE;
  auto put_until = [&](std::string_view mark) {
    std::size_t at = rest.find(mark);
    out.text(rest.substr(0, at));
    rest.remove_prefix(at + mark.size());
  };
  put_until("@TITLE@");
  out.text(as_markup(short_text(title, MAX_TEXT)));
  put_until("@ANSWERS@");
  put_packed(out, data.dump(-1, ' ', false, Json::error_handler_t::replace));
  const auto* next = timelines.begin();
  for (std::string_view mark : {"@TIMELINE@", "@TIMELINE_B@"}) {
    put_until(mark);
    if (next != timelines.end()) put_packed(out, *next++);
  }
  out.text(rest);
}

}  // namespace

struct Report::Analyses {
  Analyses(Names& all_names, ThreadFilter wanted, const Part& part, const Moments& moments,
           std::size_t most_events)
      : names(all_names),
        summary(all_names, wanted, part, moments, MAX_GAPS),
        calls(all_names, Calls::By::function),
        kernels(all_names),
        ioctls(all_names),
        energy(all_names, summary.execution(), part),
        errors(all_names, false),
        stacks(all_names),
        timeline(all_names, most_events) {}

  // The execution that `energy` shares is finished with `summary`, so that comes first.
  std::array<Analysis*, 9> each() {
    return {&summary, &calls, &kernels, &ioctls, &gpus, &energy, &errors, &stacks, &timeline};
  }
  std::string timeline_data() const {
    return analyze::timeline_data(timeline, &summary.execution());
  }

  const Names& names;
  Summary summary;
  Calls calls;
  Kernels kernels;
  Ioctls ioctls;
  SampledGpus gpus;
  Energy energy;
  Errors errors;
  StackWeights stacks;
  ReportTimeline timeline;
};

Report::Report(Names& names, ThreadFilter wanted, const Part& part, const Moments& moments,
               std::size_t most_events)
    : all_(std::make_unique<Analyses>(names, wanted, part, moments, most_events)),
      moments_(moments) {}
Report::~Report() = default;

void Report::line(const Line& line) {
  for (Analysis* analysis : all_->each()) analysis->line(line);
}
void Report::outside(const Line& line) {
  for (Analysis* analysis : all_->each()) analysis->outside(line);
}
void Report::finish(const TraceFacts& facts) {
  for (Analysis* analysis : all_->each()) analysis->finish(facts);
}

bool Report::found_thread() const { return all_->summary.found_thread(); }

Json Report::answers() const {
  const Execution& execution = all_->summary.execution();
  Json answers = {{"summary", all_->summary.json()},
                  {"calls", {{"calls", calls_json(all_->calls.groups(), Calls::By::function)}}},
                  {"kernels", kernels_json(all_->kernels, Kernels::By::configuration)},
                  {"ioctls", ioctls_json(all_->ioctls.answer())},
                  {"gaps", gaps_json(execution.idle(), execution.gpus(), all_->gpus)},
                  {"memory", {{"memory", memory_json(all_->summary.memory())}}},
                  {"energy", energy_json(all_->energy)},
                  {"errors", errors_json(all_->errors.answer(), all_->summary.memory())},
                  {"stacks", stacks_json(all_->stacks, all_->names)}};
  make_fit(answers);
  return answers;
}

Json Report::data(const TraceFacts& facts, const std::string& title) const {
  Json data = {{"version", CUDABPF_VERSION},
               {"title", title},
               {"heading", heading_of(facts, moments_)},
               {"command", command_in(facts.header)},
               {"trace", facts_json(facts)}};
  make_fit(data);
  data["missing"] = missing_text(facts);  // is printable, and has lines
  data["answers"] = answers();
  data["columns"] = columns_json();
  return data;
}

void Report::write(ByteStream& out, const TraceFacts& facts, const std::string& title,
                   std::optional<Served> served) const {
  Json all = data(facts, title);
  bool ended = facts.end.has_value();
  if (served) all["served"] = {{"ended", ended}, {"running", !ended && served->may_run}};
  put_page(out, title, all, {all_->timeline_data()});
}

void ReportOfTwo::write(ByteStream& out) const {
  std::string title = a_.title + " and " + b_.title;
  Json data = {{"version", CUDABPF_VERSION}, {"title", title}, {"difference", difference_}};
  make_fit(data);
  data["a"] = a_.report.data(a_.facts, a_.title);
  data["b"] = b_.report.data(b_.facts, b_.title);
  put_page(out, title, data, {a_.report.all_->timeline_data(), b_.report.all_->timeline_data()});
}

}  // namespace cudabpf::analyze
