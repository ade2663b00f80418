#include "analyze/questions/measured_operations.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/work.hpp"
#include "trace/header.hpp"
#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

void OperationFigures::add(const OperationFigures& other) {
  times.add(other.times);
  queued.add(other.queued);
  bytes = saturating_sum(bytes, other.bytes);
}

MeasuredOperations::MeasuredOperations(Names& names)
    : names_(names), fills_(names.add("fill")), others_(names.add("(others)")) {}

void MeasuredOperations::line_of(const Line& line, bool wanted) {
  if (line.kind == LineKind::call) {
    bool launches_graph = line.meaning->node == NodeWork::graph && gives_work(line.work);
    if (was_wanted_ && launches_graph && !line.failed())
      settle(runs_.add(
          {.id = line.id, .ts = line.ts, .place = place_of_graph(line.content), .wanted = wanted}));
  } else if (line.kind == LineKind::gpu_operation) {
    did(line, wanted);
  } else if (line.kind == LineKind::gpu_times) {
    was_wanted_ = true;
  } else if (line.kind == LineKind::header) {
    was_wanted_ |= line.header->measures_gpus();
    whole_graphs_ |= line.header->measures_whole_graphs();
  }
}

void MeasuredOperations::did(const Line& line, bool wanted) {
  was_wanted_ = true;
  if (!line.has(Field::duration)) return;
  measured_ = true;
  bool whole_graph = line.op == Type::graph;
  whole_graphs_ |= whole_graph;
  // Nodes are not reported in the order in which they began, so a launch ends with the last of
  // them.
  if (GraphRun* run = runs_.find(line.call)) {
    run->begin = std::min(run->begin, line.ts);
    run->end = std::max(run->end, line.end());
  } else if (whole_graph && wanted) {
    add_graph(place_of_graph(nullptr), line.duration);
  }
  if (line.op != Type::kernel && !whole_graph && wanted) copied(line);
}

namespace {
// Nodes of a graph wait for each other, too. Null: it is not known.
const IssuingCall* waited_since(const Line& work) {
  bool alone = work.issuer && work.issuer->node != NodeWork::graph;
  return alone ? work.issuer : nullptr;
}
}  // namespace

void MeasuredOperations::copied(const Line& line) {
  Name direction = line.op == Op::set ? fills_ : line.direction;
  if (!has_room_for(copies_, direction.id, MAX_DIRECTIONS)) direction = others_;
  OperationFigures& figures = copies_[direction.id];
  figures.times.add(line.duration);
  figures.bytes = saturating_sum(figures.bytes, line.size);
  if (const IssuingCall* call = waited_since(line)) figures.queued.add(call->queued_until(line.ts));
}

void MeasuredOperations::kernel(const Line& line, OperationFigures& figures) {
  figures.times.add(line.duration);
  kernels_.times.add(line.duration);
  const IssuingCall* call = waited_since(line);
  if (!call) return;
  figures.queued.add(call->queued_until(line.ts));
  kernels_.queued.add(call->queued_until(line.ts));
}

void MeasuredOperations::finish(const TraceFacts&) {
  runs_.each([this](const GraphRun& run) { settle(run); });
}

// All GPU operations of this launch have been read.
void MeasuredOperations::settle(const GraphRun& run) {
  if (!run.id || !run.wanted || run.begin > run.end) return;
  add_graph(run.place, run.end - run.begin);
  std::uint64_t queued = run.begin > run.ts ? run.begin - run.ts : 0;
  graphs_[run.place].queued.add(queued);
  all_graphs_.queued.add(queued);
}

void MeasuredOperations::add_graph(std::uint32_t place, std::uint64_t time) {
  graphs_[place].times.add(time);
  all_graphs_.times.add(time);
}

std::uint32_t MeasuredOperations::place_of_graph(const LaunchedGraph* graph) {
  auto [at, is_new] =
      places_of_graphs_.try_emplace(graph, static_cast<std::uint32_t>(graphs_.size()));
  if (is_new) graphs_.emplace_back();
  return at->second;
}

const OperationFigures* MeasuredOperations::graph(const LaunchedGraph* graph) const {
  auto at = places_of_graphs_.find(graph);
  if (at == places_of_graphs_.end() || !graphs_[at->second].times.count()) return nullptr;
  return &graphs_[at->second];
}

std::vector<MeasuredOperations::OfDirection> MeasuredOperations::copies() const {
  std::vector<OfDirection> all;
  for (const auto& [direction, figures] : copies_)
    all.push_back({direction ? std::string(names_.text({direction})) : "(not known)",
                   direction == fills_.id, figures});
  std::sort(all.begin(), all.end(), [](const OfDirection& a, const OfDirection& b) {
    return std::tuple(b.figures.times.total(), std::string_view(a.name)) <
           std::tuple(a.figures.times.total(), std::string_view(b.name));
  });
  return all;
}

}  // namespace cudabpf::analyze
