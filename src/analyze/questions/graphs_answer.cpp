// What the answer about a trace's kernels tells of graphs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/questions/kernels.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t KERNELS = 3;        // of a graph, that a page names
constexpr std::size_t JSON_KERNELS = 32;  // and JSON

std::string told_name(const Kernels& kernels, Name kernel) {
  return kernel ? kernels.short_name(kernel) : "(no name)";
}

// "graph 3: gemm ×12, softmax, 4 more"
std::string name_of(const Kernels& kernels, const Kernels::OfGraph& of) {
  std::string text;
  std::size_t told = std::min(of.kernels.size(), KERNELS);
  for (std::size_t i = 0; i < told; i++) {
    auto [kernel, count] = of.kernels[i];
    text += (text.empty() ? ": " : ", ") + told_name(kernels, kernel);
    if (count > 1) text += " ×" + human_count(count);
  }
  if (of.kernels.size() > told) text += fmt::format(", {} more", of.kernels.size() - told);
  return of.name + text;
}

Json name_json(const Kernels& kernels, Name kernel) {
  return kernel ? Json(kernels.full_name(kernel)) : Json(nullptr);
}

// The kernels in conditional bodies, each once.
std::vector<Name> conditional_kernels(const Kernels& kernels) {
  std::vector<Name> all;
  for (const Kernels::OfGraph& of : kernels.graphs())
    all.insert(all.end(), of.conditional.begin(), of.conditional.end());
  std::sort(all.begin(), all.end(), [](Name a, Name b) { return a.id < b.id; });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

Json graphs_json(const Kernels& kernels) {
  Json json = Json::array();
  for (const Kernels::OfGraph& of : kernels.graphs()) {
    const LaunchedGraph& graph = *of.launched.graph;
    Json one = {{"graph", graph.number},
                {"launches", of.launches},
                {"nodes", graph.nodes},
                {"kernels", graph.kernels},
                {"runs", of.runs},
                {"bytes_copied", graph.bytes_copied},
                {"first_ts", of.launched.first},
                {"last_ts", of.launched.last},
                {"different_kernels", of.kernels.size()},
                {"most_frequent", Json::array()}};
    if (kernels.gpu().measured()) {
      one["gpu"] = gpu_times_json(of.gpu.times);
      one["queue"] = gpu_times_json(of.gpu.queued);
    }
    for (std::size_t i = 0; i < std::min(of.kernels.size(), JSON_KERNELS); i++)
      one["most_frequent"].push_back(
          {{"kernel", name_json(kernels, of.kernels[i].first)}, {"count", of.kernels[i].second}});
    for (std::size_t i = 0; i < std::min(of.conditional.size(), JSON_KERNELS); i++)
      one["conditional"].push_back(name_json(kernels, of.conditional[i]));
    json.push_back(std::move(one));
  }
  return json;
}

void add_graphs(Page& page, const Kernels& kernels, std::size_t at_most) {
  std::vector<Kernels::OfGraph> graphs = kernels.graphs();
  if (graphs.empty()) return;
  for (std::size_t i = 0; i < std::min(graphs.size(), at_most + 1); i++)
    graphs[i].name = name_of(kernels, graphs[i]);
  constexpr std::size_t NAME_ROOM = 36;
  Table table("graphs",
              {{"launches"},
               {"nodes", 3},
               {"kernels"},
               {"copied", 2},
               {"first", 4},
               {"runs", 1},
               {"GPU time"},
               {"mean"},
               {"max", 5}},
              NAME_ROOM);
  add_rows(table, graphs, at_most, "graphs",
           [&](const Kernels::OfGraph& of) -> std::vector<std::string> {
             const LaunchedGraph* graph = of.launched.graph;  // null: several
             const Durations& times = of.gpu.times;
             bool timed = times.count();
             return {human_count(of.launches),
                     graph ? human_count(graph->nodes) : "",
                     graph ? human_count(graph->kernels) : "",
                     graph && graph->bytes_copied ? human_bytes(graph->bytes_copied) : "",
                     graph ? page.at(of.launched.first) : "",
                     human_count(of.runs),
                     timed ? human_time(times.total()) : "",
                     timed ? human_time(times.mean()) : "",
                     timed ? human_time(times.max()) : ""};
           });
  table.add_to(page);
  page.paragraph("A graph's contents are per launch; runs count its kernels over all launches.", 2);
  if (kernels.gpu().graph_launches().times.count())
    page.paragraph(
        "The GPU time of a launch is from the beginning of its first node on the GPU to the end "
        "of its last.",
        2);
}

void add_graph_notes(Page& page, const Kernels& kernels) {
  const Kernels::Totals& totals = kernels.totals();
  const GraphLaunches& graphs = kernels.graph_launches();
  auto note = [&](const std::string& text) { page.paragraph(text, 2); };
  if (graphs.unknown())
    note(fmt::format("What {} ran is not known, and not counted: {}.",
                     count_of(graphs.unknown(), "launch of a graph", "launches of graphs"),
                     why_unknown(graphs)));
  if (const WorkFigures* unknown = kernels.gpu().graph(nullptr))
    note(fmt::format("On the GPU, {} whose contents are not known took {}.",
                     count_of(unknown->times.count(), "launch of a graph", "launches of graphs"),
                     human_time(unknown->times.total())));
  if (totals.failed_graphs)
    note(fmt::format("{} failed, and ran nothing.",
                     count_of(totals.failed_graphs, "launch of a graph", "launches of graphs")));
  if (totals.unlisted)
    note(fmt::format("{} in graphs were of kernels that the trace does not list.",
                     count_of(totals.unlisted, "run", "runs")));
  if (auto conditional = conditional_kernels(kernels); !conditional.empty()) {
    std::string names;
    std::size_t told = std::min(conditional.size(), KERNELS);
    for (std::size_t i = 0; i < told; i++)
      names += (i ? ", " : "") + told_name(kernels, conditional[i]);
    if (conditional.size() > told) names += fmt::format(", {} more", conditional.size() - told);
    note(
        fmt::format("Kernels in conditional bodies of graphs run any number of times, and are not "
                    "counted: {}.",
                    names));
  }
  if (totals.in_graphs)
    note(
        "A kernel in a graph has no launching call of its own: its first and last are when a graph "
        "with it was launched.");
}

}  // namespace cudabpf::analyze
