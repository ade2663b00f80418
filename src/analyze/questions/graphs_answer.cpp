// What the answer about a trace's kernels says of graphs.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/columns.hpp"
#include "analyze/questions/kernels.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t KERNELS = 3;        // of a graph, that a page names
constexpr std::size_t JSON_KERNELS = 32;  // and JSON

std::string listed_name(const Kernels& kernels, Name kernel) {
  return kernel ? kernels.short_name(kernel) : "(no name)";
}

// "graph 3: gemm ×12, softmax, 4 more"
std::string name_of(const Kernels& kernels, const Kernels::OfGraph& of) {
  std::string text;
  std::size_t listed = std::min(of.kernels.size(), KERNELS);
  for (std::size_t i = 0; i < listed; i++) {
    auto [kernel, count] = of.kernels[i];
    text += (text.empty() ? ": " : ", ") + listed_name(kernels, kernel);
    if (count > 1) text += " ×" + human_count(count);
  }
  if (of.kernels.size() > listed) text += fmt::format(", {} more", of.kernels.size() - listed);
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

constexpr auto most_frequent = [](const Kernels::OfGraph& of, const Kernels* kernels) {
  Json json = Json::array();
  for (std::size_t i = 0; i < std::min(of.kernels.size(), JSON_KERNELS); i++)
    json.push_back(
        {{"kernel", name_json(*kernels, of.kernels[i].first)}, {"count", of.kernels[i].second}});
  return json;
};

constexpr auto in_conditional = [](const Kernels::OfGraph& of, const Kernels* kernels) {
  Json json = Json::array();
  for (std::size_t i = 0; i < std::min(of.conditional.size(), JSON_KERNELS); i++)
    json.push_back(name_json(*kernels, of.conditional[i]));
  bool any = !json.empty();
  return known_if(any, std::move(json));
};

// Several graphs in one row have none.
template <auto... Steps>
constexpr auto each_has = [](const Kernels::OfGraph& of) {
  return of.launched.graph ? value_of(its<Steps...>(*of.launched.graph)) : known_if(false, 0);
};

template <auto Times>
constexpr auto measured_times = [](const Kernels::OfGraph& of, const Kernels* kernels) {
  return known_if(kernels->gpu().measured(), times_json(of.gpu.*Times, Means::mean_and_min));
};

using Graph = Kernels::OfGraph;
constexpr auto GRAPH_GPU = &OperationFigures::times;

constexpr Column<Graph, const Kernels*> GRAPH_COLUMNS[] = {
    {{"graph"}, As::number, each_has<&LaunchedGraph::number>, {1, "graph"}},
    {{"launches", "launches"}, As::count, its<&Graph::launches>, {2, "launches"}},
    {{"nodes", "nodes", 3}, As::count, each_has<&LaunchedGraph::nodes>, {3, "nodes"}},
    {{"kernels", "kernels"}, As::count, each_has<&LaunchedGraph::kernels>, {4, "kernels"}},
    {{"runs"}, As::count, its<&Graph::runs>, {5, "kernel runs"}},
    {{"bytes_copied", "copied", 2},
     As::bytes,
     each_has<&LaunchedGraph::bytes_copied, shown_if_any>},
    {{"first_ts", "first", 4},
     As::moment,
     [](auto& of) { return shown_if(of.launched.graph, of.launched.first); }},
    {{"last_ts"}, As::moment, [](auto& of) { return of.launched.last; }},
    {{"different_kernels"}, As::count, [](auto& of) { return of.kernels.size(); }},
    {{"most_frequent"}, As::object, most_frequent, {6, "most frequent", WIDE}},
    {{nullptr, "runs", 1}, As::count, its<&Graph::runs>},
    {{"gpu"}, As::object, measured_times<GRAPH_GPU>},
    {{"gpu.total_us", "GPU time"}, As::time, its<&Graph::gpu, GRAPH_GPU, total_of>},
    {{"gpu.mean_us", "mean"}, As::time, its<&Graph::gpu, GRAPH_GPU, mean_of>},
    {{"gpu.max_us", "max", 5}, As::time, its<&Graph::gpu, GRAPH_GPU, max_of>},
    {{"queue"}, As::object, measured_times<&OperationFigures::queued>},
    {{"conditional"}, As::object, in_conditional},
};

}  // namespace

Json graphs_json(const Kernels& kernels) {
  return list_of(kernels.graphs(), GRAPH_COLUMNS, &kernels);
}

Json graphs_columns() { return page_columns(GRAPH_COLUMNS); }

void add_graphs(Page& page, const Kernels& kernels, std::size_t at_most) {
  std::vector<Kernels::OfGraph> graphs = kernels.graphs();
  if (graphs.empty()) return;
  for (std::size_t i = 0; i < std::min(graphs.size(), at_most + 1); i++)
    graphs[i].name = name_of(kernels, graphs[i]);
  constexpr std::size_t NAME_ROOM = 36;
  Table table = table_of("graphs", GRAPH_COLUMNS, NAME_ROOM);
  add_rows(table, graphs, at_most, "graphs", cells_in(GRAPH_COLUMNS, page, &kernels));
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
  if (const OperationFigures* unknown = kernels.gpu().graph(nullptr))
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
    std::size_t listed = std::min(conditional.size(), KERNELS);
    for (std::size_t i = 0; i < listed; i++)
      names += (i ? ", " : "") + listed_name(kernels, conditional[i]);
    if (conditional.size() > listed) names += fmt::format(", {} more", conditional.size() - listed);
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
