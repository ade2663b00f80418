#include "analyze/questions/kernels.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/derived/classes_by_name.hpp"
#include "analyze/derived/processes.hpp"
#include "analyze/derived/shown_ranges.hpp"
#include "analyze/work.hpp"
#include "util/hash.hpp"
#include "util/keyed_rows.hpp"
#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {

// `Call`: its line, or what is known of it later.
template <typename Call>
Kernels::Launch launch_of(const Call& call, const RangePlace* place) {
  return {call.kernel, call.kernel ? 0 : call.handle, call.grid, call.block, call.shared, place};
}

bool more(const Kernels::Figures& a, const Kernels::Figures& b) {
  return std::tuple(b.gpu.times.total(), b.runs(), b.count, a.first, std::string_view(a.name)) <
         std::tuple(a.gpu.times.total(), a.runs(), a.count, b.first, std::string_view(b.name));
}

}  // namespace

Kernels::Kernels(Names& names, By by)
    : names_(names),
      by_(by),
      lost_(names.add("lost")),
      graphs_(names),
      gpu_(names),
      short_names_(names) {}

void Kernels::Figures::add(const Figures& other) {
  configurations += other.configurations;
  count += other.count;
  failed += other.failed;
  ran += other.ran;
  in_graphs = saturating_sum(in_graphs, other.in_graphs);
  first = std::min(first, other.first);
  last = std::max(last, other.last);
  calls.add(other.calls);
  gaps.add(other.gaps);
  gpu.add(other.gpu);
}

void Kernels::OfClass::add(const OfClass& other) {
  kernels += other.kernels;
  configurations += other.configurations;
  count += other.count;
  ran += other.ran;
  in_graphs = saturating_sum(in_graphs, other.in_graphs);
  calls.add(other.calls);
  gpu.add(other.gpu);
}

void Kernels::OfGraph::add(const OfGraph& other) {
  launches += other.launches;
  gpu.add(other.gpu);
  runs = saturating_sum(runs, other.runs);
}

std::size_t Kernels::LaunchHash::operator()(const Launch& launch) const {
  auto side = [&](std::size_t i) { return std::uint64_t{launch.grid[i]} << 32 | launch.block[i]; };
  return hash_of(launch.handle, launch.kernel.id, side(0), side(1), side(2), launch.shared,
                 launch.place ? launch.place->number + 1 : 0);
}

void Kernels::line(const Line& line) {
  // The lost events may include a launch, so no gap may span them.
  if (line.kind == LineKind::lost && line.severity == lost_) return streams_.clear();
  if (!streams_.empty()) forget_streams(line);
  if (line.kind == LineKind::graph) short_names_.line(line);
  gpu_.line(line);
  if (line.kind == LineKind::gpu_operation && line.op == Type::kernel) return measured(line);
  if (line.meaning->work != Work::launch) return;
  if (!is_counted(line)) {
    totals_.nested++;
    return;
  }
  short_names_.line(line);
  if (line.meaning->node == NodeWork::kernel) launch(line);
  if (line.meaning->node == NodeWork::graph && !line.captured) launch_graph(line);
}

// A stream that reuses the handle of a destroyed one has nothing to do with it.
void Kernels::forget_streams(const Line& line) {
  erase_emptied(line, streams_, [](const auto& stream) { return stream.first.process; });
  if (line.meaning->stream == StreamEffect::destroy && !line.failed())
    streams_.erase(stream_of(line));
  if (line.context_gone)
    std::erase_if(streams_, [&](const auto& stream) {
      return stream.first.process == line.process->number &&
             stream.first.context == line.context_gone;
    });
}

void Kernels::launch(const Line& line) {
  totals_.launches++;
  if (!line.kernel) totals_.unnamed++;
  if (!line.has(Field::duration)) totals_.without_return++;
  if (line.captured) totals_.captured++;
  std::size_t place = place_of(launch_of(line, place_in(line)), 1);
  Figures& figures = figures_[place];
  figures.count++;
  figures.first = std::min(figures.first, line.ts);
  figures.last = std::max(figures.last, line.ts);
  if (line.has(Field::duration)) figures.calls.add(line.duration);
  if (line.failed()) {
    figures.failed++;
    totals_.failed++;
  } else if (!line.captured) {
    figures.ran++;
    totals_.ran++;
    if (line.has(Field::stream)) gap(line, place);
  }
}

void Kernels::launch_graph(const Line& line) {
  totals_.graphs++;
  if (line.failed()) {
    totals_.failed_graphs++;
    return;
  }
  graphs_.launched(line);
  if (by_ == By::range && line.content) add_graph({line.content, 1, line.ts, line.ts}, line.place);
}

// A run belongs to its launch, whatever else its line says; a run in a graph has no launch of its
// own.
void Kernels::measured(const Line& line) {
  if (!line.has(Field::duration)) return;
  const IssuingCall* call = line.issuer;
  bool launched = call && call->node == NodeWork::kernel && !call->nested;
  if (!launched) short_names_.line(line);
  Launch launch = launched
                      ? launch_of(*call, place_in(line))
                      : Launch{line.kernel, 0, line.grid, line.block, line.shared, place_in(line)};
  std::size_t place = place_of(launch, 0);
  gpu_.kernel(line, figures_[place].gpu);
}

void Kernels::finish(const TraceFacts& facts) {
  gpu_.finish(facts);
  lacks_launches_ = facts.leaves_out("launches");
  short_names_.settle();
  if (by_ == By::range) return;  // each launch of a graph was added in its range
  for (const GraphLaunches::OfGraph& launched : graphs_.graphs()) add_graph(launched, nullptr);
}

void Kernels::add_graph(const GraphLaunches::OfGraph& launched, const RangePlace* place) {
  auto ran = [&](const Launch& launch, std::uint64_t count) {
    std::uint64_t runs = saturating_product(count, launched.launches);
    if (runs) ran_in_graph(launch, runs, launched);
    return runs;
  };
  for (const NodesAlike& nodes : launched.graph->list)
    if (nodes.what == NodeWork::kernel && !nodes.conditional)
      ran({nodes.kernel, nodes.handle, nodes.grid, nodes.block, nodes.shared, place}, nodes.count);
  Launch unlisted_in;
  unlisted_in.place = place;
  std::uint64_t unlisted = ran(unlisted_in, launched.graph->unlisted_kernels);
  totals_.unlisted = saturating_sum(totals_.unlisted, unlisted);
}

void Kernels::ran_in_graph(const Launch& launch, std::uint64_t runs,
                           const GraphLaunches::OfGraph& launched) {
  Figures& figures = figures_[place_of(launch, runs)];
  figures.in_graphs = saturating_sum(figures.in_graphs, runs);
  figures.first = std::min(figures.first, launched.first);
  figures.last = std::max(figures.last, launched.last);
  totals_.in_graphs = saturating_sum(totals_.in_graphs, runs);
}

// `count`: how often it was launched in this way.
std::size_t Kernels::place_of(Launch launch, std::uint64_t count) {
  if (!has_room_for(places_, launch, MAX_CONFIGURATIONS)) {
    totals_.not_kept_apart = saturating_sum(totals_.not_kept_apart, count);
    launch = {};
  }
  auto [at, is_new] = places_.try_emplace(launch, figures_.size());
  if (is_new) {
    figures_.emplace_back();
    figures_.back().launch = launch;
    figures_.back().configurations = 1;
  }
  return at->second;
}

void Kernels::gap(const Line& line, std::size_t place) {
  StreamKey stream = stream_of(line);
  auto last = streams_.find(stream);
  if (last != streams_.end()) {
    std::uint64_t end = last->second.end;  // another thread's launch may have overlapped
    figures_[last->second.figures].gaps.add(line.ts > end ? line.ts - end : 0);
  }
  if (!line.has(Field::duration)) {  // it is not known when it returned
    if (last != streams_.end()) streams_.erase(last);
    return;
  }
  if (last != streams_.end()) {
    last->second = {place, line.end()};
  } else {
    if (streams_.size() >= MAX_STREAMS) streams_.clear();
    streams_[stream] = {place, line.end()};
  }
}

std::vector<Kernels::Figures> Kernels::figures(By by) const {
  std::vector<Figures> all;
  if (by == By::configuration) {
    all = figures_;
  } else {
    HashMap<Launch, std::size_t, LaunchHash> places;
    for (const Figures& one : figures_) {
      Launch kernel;
      kernel.kernel = one.launch.kernel;
      kernel.handle = one.launch.handle;
      if (by == By::range) kernel.place = one.launch.place;
      auto [at, is_new] = places.try_emplace(kernel, all.size());
      if (!is_new) {
        all[at->second].add(one);
        continue;
      }
      all.push_back(one);
      all.back().launch = kernel;
    }
  }

  name(all);
  std::sort(all.begin(), all.end(), more);
  return all;
}

std::vector<Kernels::Group> Kernels::groups() const {
  ShownRanges ranges(names_);
  for (const Figures& one : figures_) ranges.add(one.launch.place);
  ranges.settle();
  KeyedRows<std::string, Group> groups;
  for (Figures& one : figures(By::range)) {
    std::string range = ranges.text(one.launch.place);
    groups.of(range, {.name = range, .all = {}, .kernels = {}}).add(std::move(one));
  }
  for (Group& group : groups.rows()) std::sort(group.kernels.begin(), group.kernels.end(), more);
  return groups.take([](const Group& a, const Group& b) { return more(a.all, b.all); });
}

void Kernels::Group::add(Figures&& kernel) {
  all.add(kernel);
  for (Figures& known : kernels)
    if (known.launch.kernel == kernel.launch.kernel && known.launch.handle == kernel.launch.handle)
      return known.add(kernel);
  kernels.push_back(std::move(kernel));
}

// Fills in what follows from the name alone.
void Kernels::name(std::vector<Figures>& all) const {
  ClassesByName classes(names_);
  for (Figures& one : all) {
    Name kernel = one.launch.kernel;
    one.full = names_.text(kernel);
    one.kernel_class = classes.of(kernel);
    one.name = kernel              ? short_names_.of(kernel)
               : one.launch.handle ? "(no name) " + hexadecimal(one.launch.handle)
                                   : "(not known)";
  }
}

std::vector<Kernels::OfClass> Kernels::classes() const {
  std::vector<OfClass> all(KERNEL_CLASSES);
  for (const Figures& kernel : figures(By::name)) {
    OfClass& of = all[static_cast<std::size_t>(kernel.kernel_class)];
    of.name = to_string(kernel.kernel_class);
    of.add({{},
            1,
            kernel.configurations,
            kernel.count,
            kernel.ran,
            kernel.in_graphs,
            kernel.calls,
            kernel.gpu});
  }
  std::erase_if(all, [](const OfClass& of) { return !of.kernels; });
  std::stable_sort(all.begin(), all.end(), [](const OfClass& a, const OfClass& b) {
    return std::tuple(a.gpu.times.total(), a.runs(), a.count) >
           std::tuple(b.gpu.times.total(), b.runs(), b.count);
  });
  return all;
}

std::vector<Kernels::OfGraph> Kernels::graphs() const {
  std::vector<OfGraph> all;
  for (const GraphLaunches::OfGraph& launched : graphs_.graphs()) {
    OfGraph& of = all.emplace_back();
    of.name = "graph " + std::to_string(launched.graph->number);
    of.launched = launched;
    of.launches = launched.launches;
    of.runs = launched.runs();
    if (const OperationFigures* gpu = gpu_.graph(launched.graph)) of.gpu = *gpu;
    KeyedRows<std::uint32_t, std::pair<Name, std::uint64_t>> kernels;  // by name
    for (const NodesAlike& nodes : launched.graph->list) {
      if (nodes.what != NodeWork::kernel) continue;
      if (nodes.conditional) {
        of.conditional.push_back(nodes.kernel);
        continue;
      }
      std::uint64_t& count = kernels.of(nodes.kernel.id, {nodes.kernel, 0}).second;
      count = saturating_sum(count, nodes.count);
    }
    of.kernels = kernels.take([](auto& a, auto& b) { return a.second > b.second; });
  }
  return all;
}

}  // namespace cudabpf::analyze
