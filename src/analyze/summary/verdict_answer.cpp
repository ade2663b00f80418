#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/summary/verdict.hpp"

namespace cudabpf::analyze {

Json verdict_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) {
    Json figures = Json::object();
    for (auto [name, figure] : finding.figures) figures[std::string(name)] = figure;
    json.push_back({{"id", finding.id},
                    {"title", finding.title},
                    {"sure", finding.sure == Finding::Sure::known ? "known" : "likely"},
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
    page.statement(fmt::format("{}{}", finding.title,
                               finding.sure == Finding::Sure::likely ? ", probably" : ""),
                   finding.text);
  }
}

}  // namespace cudabpf::analyze
