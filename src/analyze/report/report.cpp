#include "analyze/report/report.hpp"

#include <array>
#include <string_view>

#include "analyze/energy/gaps_answer.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/questions/calls.hpp"
#include "analyze/questions/errors.hpp"
#include "analyze/questions/ioctls.hpp"
#include "analyze/questions/kernels.hpp"
#include "analyze/report/packed.hpp"
#include "analyze/report/report_data.hpp"
#include "analyze/report/report_timeline.hpp"
#include "analyze/summary/summary.hpp"
#include "util/text/markup.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::string_view PAGE =
#include "report_page.inc"
    ;
constexpr std::size_t LONGEST_TEXT = 4096, MOST_ROWS = 2000, MOST_GAPS = 200;

// What the page shows of other people's text is short and printable; what it says of long lists is
// how much of them is missing.
void make_fit(Json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    text = short_text(text, LONGEST_TEXT);
  }
  if (json.is_array() || json.is_object())
    for (Json& part : json) make_fit(part);
  if (!json.is_object()) return;
  Json left_out = Json::object();
  for (auto& [name, part] : json.items())
    if (part.is_array() && part.size() > MOST_ROWS && part.front().is_object()) {
      left_out[name + "_left_out"] = part.size() - MOST_ROWS;
      part.erase(part.begin() + MOST_ROWS, part.end());
    }
  json.update(left_out);
}

std::string missing_text(const TraceFacts& facts) {
  constexpr unsigned WIDTH = 100;
  Page page(
      Terminal{.is_terminal = false, .color = false, .width = WIDTH, .height = 0, .utf8 = true});
  add_facts(page, facts);
  return page.take();
}

}  // namespace

struct Report::Analyses {
  Analyses(Names& all_names, std::uint32_t pid, const Part& part, const Moments& moments)
      : names(all_names),
        summary(all_names, pid, part, moments),
        calls(all_names, Calls::By::function),
        kernels(all_names),
        ioctls(all_names),
        idle(all_names, MOST_GAPS, part),
        at_work(all_names, MOST_GAPS, part),
        memory(all_names, part),
        errors(all_names, false),
        timeline(all_names) {}

  std::array<Analysis*, 10> each() {
    return {&summary, &calls, &kernels, &ioctls, &idle,
            &at_work, &gpus,  &memory,  &errors, &timeline};
  }

  const Names& names;
  Summary summary;
  Calls calls;
  Kernels kernels;
  Ioctls ioctls;
  Idle idle;
  GpusAtWork at_work;
  SampledGpus gpus;
  Memory memory;
  Errors errors;
  ReportTimeline timeline;
};

Report::Report(Names& names, std::uint32_t pid, const Part& part, const Moments& moments)
    : all_(std::make_unique<Analyses>(names, pid, part, moments)), moments_(moments) {}
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

Json Report::answers() const {
  Json answers = {{"summary", all_->summary.json()},
                  {"calls", {{"calls", calls_json(all_->calls.groups(), Calls::By::function)}}},
                  {"kernels", kernels_json(all_->kernels, Kernels::By::configuration)},
                  {"ioctls", ioctls_json(all_->ioctls.answer())},
                  {"gaps", gaps_json(all_->idle, all_->at_work, all_->gpus)},
                  {"memory", {{"memory", memory_json(all_->memory)}}},
                  {"errors", errors_json(all_->errors.answer(), all_->names)}};
  make_fit(answers);
  return answers;
}

void Report::write(ByteStream& out, const TraceFacts& facts, const std::string& title) const {
  Json about = {{"version", CUDABPF_VERSION},
                {"title", title},
                {"heading", heading_of(facts, moments_)},
                {"trace", facts_json(facts)}};
  make_fit(about);
  about["missing"] = missing_text(facts);  // is printable, and has lines
  about["answers"] = answers();
  std::string_view rest = PAGE;
  auto put_until = [&](std::string_view mark) {
    std::size_t at = rest.find(mark);
    out.text(rest.substr(0, at));
    rest.remove_prefix(at + mark.size());
  };
  put_until("@TITLE@");
  out.text(as_markup(short_text(title, LONGEST_TEXT)));
  put_until("@ANSWERS@");
  put_packed(out, about.dump(-1, ' ', false, Json::error_handler_t::replace));
  put_until("@TIMELINE@");
  put_packed(out, timeline_data(all_->timeline));
  out.text(rest);
}

}  // namespace cudabpf::analyze
