#include "analyze/summary/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/summary/rules.hpp"

namespace cudabpf::analyze {

std::vector<Finding> find_verdict(const Seen& seen) {
  Judged judged(seen);
  std::vector<Finding> found;
  auto add = [&](Found one) {
    if (one) found.push_back(std::move(*one));
  };
  for (auto rule : {incomplete, errors, out_of_memory, no_gpu_times, no_work, not_judged})
    add(rule(judged));
  for (Finding& one : bounds(judged)) found.push_back(std::move(one));
  for (auto rule : {loading, memory_growth}) add(rule(judged));
  return found;
}

Json verdict_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) {
    Json figures = Json::object();
    for (auto [name, figure] : finding.figures) figures[std::string(name)] = figure;
    json.push_back({{"id", finding.id},
                    {"title", finding.title},
                    {"sure", Finding::text_of(finding.sure)},
                    {"text", finding.text},
                    {"begin_us", microseconds(finding.begin)},
                    {"end_us", microseconds(finding.end)},
                    {"figures", std::move(figures)},
                    {"calls", finding.calls}});
  }
  return json;
}

void add_verdict(Page& page, const std::vector<Finding>& findings) {
  constexpr std::size_t SHOWN = 3;
  for (std::size_t i = 0; i < std::min(SHOWN, findings.size()); i++) {
    const Finding& finding = findings[i];
    page.statement(finding.heading(), finding.text);
  }
}

}  // namespace cudabpf::analyze
