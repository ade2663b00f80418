// What stands in a trace comes from any program, and may have been written by anybody: no lines
// may make an analysis crash, hang or swell, or bring control characters to the terminal.
//
// The input: a byte that says which analysis is asked, one for the terminal's width, and the lines
// of a trace.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/calls.hpp"
#include "analyze/difference.hpp"
#include "analyze/errors.hpp"
#include "analyze/idle.hpp"
#include "analyze/ioctls.hpp"
#include "analyze/kernels.hpp"
#include "analyze/line_parser.hpp"
#include "analyze/memory.hpp"
#include "analyze/summary.hpp"
#include "analyze/timeline.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

struct Asked {
  std::unique_ptr<Analysis> analysis;
  std::function<Json()> json;
  std::function<void(Page&)> page;
};

template <typename Kind>
Asked asked(std::unique_ptr<Kind> analysis, auto json_of, auto show) {
  const Kind& asked = *analysis;
  return {std::move(analysis), [&asked, json_of] { return json_of(asked); },
          [&asked, show](Page& page) { show(page, asked); }};
}

std::vector<Asked> all_analyses(Names& names) {
  std::vector<Asked> all;
  for (auto by : {Calls::By::function, Calls::By::pid, Calls::By::tid, Calls::By::stream,
                  Calls::By::kernel, Calls::By::container})
    all.push_back(asked(
        std::make_unique<Calls>(names, by),
        [by](const Calls& calls) { return calls_json(calls.groups(), by); },
        [](Page& page, const Calls& calls) { add_calls(page, calls.groups(), 9); }));
  all.push_back(asked(
      std::make_unique<Summary>(names, 0), [](const Summary& summary) { return summary.json(); },
      [](Page& page, const Summary& summary) { summary.add_to(page); }));
  all.push_back(asked(std::make_unique<Idle>(names, 9), idle_json, add_idle));
  all.push_back(asked(
      std::make_unique<Ioctls>(names),
      [](const Ioctls& ioctls) { return ioctls_json(ioctls.answer()); },
      [](Page& page, const Ioctls& ioctls) {
        add_ioctls(page, ioctls.answer(), IoctlsBy::everything, 9);
      }));
  all.push_back(asked(
      std::make_unique<Errors>(names, true),
      [&names](const Errors& errors) { return errors_json(errors.answer(), names); },
      [&names](Page& page, const Errors& errors) { add_errors(page, errors.answer(), names, 9); }));
  for (auto by : {Kernels::By::name, Kernels::By::configuration}) {
    all.push_back(asked(
        std::make_unique<Kernels>(names),
        [by](const Kernels& kernels) { return kernels_json(kernels, by); },
        [by](Page& page, const Kernels& kernels) { add_kernels(page, kernels, by, 9); }));
    all.push_back(asked(
        std::make_unique<Measures>(names),
        [by](const Measures& measures) {
          return difference_json(difference(measures, measures, by));
        },
        [by](Page& page, const Measures& measures) {
          add_difference(page, difference(measures, measures, by), 9);
        }));
  }
  for (auto window : {Timeline::Window(), Timeline::Window{.from = 100'000, .to = 300'000}})
    all.push_back(asked(
        std::make_unique<Timeline>(names, window, true),
        [](const Timeline& timeline) {
          Json json = timeline_json(timeline);
          json["picture"] = timeline_svg(timeline, "fuzzed");
          return json;
        },
        add_timeline));
  all.push_back(asked(
      std::make_unique<Memory>(names),
      [](const Memory& memory) {
        Json json = memory_json(memory);
        json["picture"] = memory_svg(memory, "fuzzed");
        return json;
      },
      [](Page& page, const Memory& memory) { add_memory(page, memory, 9); }));
  return all;
}

void check_page(std::string_view page) {
  for (char c : page)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f') abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  Terminal terminal;
  terminal.width = data[1];
  std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);

  LineParser parser;
  auto all = all_analyses(parser.names());
  Asked& asked = all[data[0] % all.size()];
  TraceFacts facts;
  while (!text.empty()) {
    std::string one(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    std::size_t length = one.size();
    one.append(LineParser::PADDING, '\n');
    Line line;
    line.number = ++facts.lines;
    if (!parser.parse({one.data(), length}, line)) continue;
    if (line.kind == LineKind::header) facts.header = line.text;
    facts.last_ts = std::max(facts.last_ts, line.end());
    asked.analysis->line(line);
  }
  asked.analysis->finish(facts);
  std::string json = asked.json().dump(-1, ' ', false, Json::error_handler_t::replace);
  if (json.empty() || !Json::accept(json)) abort();
  Page page(terminal);
  asked.page(page);
  check_page(page.take());
  return 0;
}
