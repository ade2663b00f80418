#include "analyze/questions/measured_works.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/work.hpp"
#include "trace/header.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

void WorkFigures::add(const WorkFigures& other) {
  times.add(other.times);
  queued.add(other.queued);
  bytes = saturating_sum(bytes, other.bytes);
}

MeasuredWorks::MeasuredWorks(Names& names)
    : names_(names), fills_(names.add("fill")), others_(names.add("(others)")) {}

void MeasuredWorks::line_of(const Line& line, bool wanted) {
  if (line.kind == LineKind::call) {
    if (told_) asked(line, wanted);
  } else if (line.kind == LineKind::gpu_work) {
    did(line, wanted);
  } else if (line.kind == LineKind::gpu_times) {
    told_ = true;
  } else if (line.kind == LineKind::header) {
    told_ |= line.header->measures_gpus();
    whole_graphs_ |= line.header->measures_whole_graphs();
  }
}

void MeasuredWorks::asked(const Line& line, bool wanted) {
  Work work = line.work;
  if (!gives_work(work) || line.failed()) return;
  RememberedCall call;
  call.id = line.id;
  call.ts = line.ts;
  call.wanted = wanted;
  call.graph = line.meaning->node == NodeWork::graph;
  if (call.graph) call.place = place_of_graph(line.content);
  settle(calls_.add(call));
}

void MeasuredWorks::launched(const Line& line, std::size_t place) {
  if (RememberedCall* call = calls_.find(line.id); call && !call->graph)
    call->place = static_cast<std::uint32_t>(place);
}

std::uint32_t MeasuredWorks::place_of(const Line& line) {
  const RememberedCall* call = calls_.find(line.call);
  return call && !call->graph ? call->place : RememberedCall::NO_PLACE;
}

void MeasuredWorks::did(const Line& line, bool wanted) {
  told_ = true;
  if (!line.has(Field::duration)) return;
  measured_ = true;
  bool whole_graph = line.op == Type::graph;
  whole_graphs_ |= whole_graph;
  RememberedCall* call = calls_.find(line.call);
  // Nodes are not told in the order in which they began, so a launch ends with the last of them.
  if (call && call->graph) {
    call->begin = std::min(call->begin, line.ts);
    call->end = std::max(call->end, line.end());
  } else if (whole_graph && wanted) {
    add_graph(place_of_graph(nullptr), line.duration);
  }
  bool copies = line.op != Type::kernel && !whole_graph;
  if (copies && wanted) copied(line);
  if (copies && call && !call->graph) *call = {};
}

namespace {
// Both clocks have their error, so work may seem to begin before it was asked for.
std::uint64_t queued(const RememberedCall& call, std::uint64_t begin) {
  return begin > call.ts ? begin - call.ts : 0;
}
}  // namespace

void MeasuredWorks::copied(const Line& line) {
  Name direction = line.op == Op::set ? fills_ : line.direction;
  if (copies_.size() >= MAX_DIRECTIONS && !copies_.contains(direction.id)) direction = others_;
  WorkFigures& figures = copies_[direction.id];
  figures.times.add(line.duration);
  figures.bytes = saturating_sum(figures.bytes, line.size);
  const RememberedCall* call = calls_.find(line.call);
  if (call && !call->graph) figures.queued.add(queued(*call, line.ts));
}

void MeasuredWorks::kernel(const Line& line, WorkFigures& figures) {
  figures.times.add(line.duration);
  kernels_.times.add(line.duration);
  RememberedCall* call = calls_.find(line.call);
  if (!call || call->graph) return;
  figures.queued.add(queued(*call, line.ts));
  kernels_.queued.add(queued(*call, line.ts));
  *call = {};  // it has asked for nothing else
}

void MeasuredWorks::finish(const TraceFacts&) {
  calls_.each([this](const RememberedCall& call) { settle(call); });
}

// All GPU operations of this call have been read.
void MeasuredWorks::settle(const RememberedCall& call) {
  if (!call.id || !call.graph || !call.wanted || call.begin > call.end) return;
  add_graph(call.place, call.end - call.begin);
  graphs_[call.place].queued.add(queued(call, call.begin));
  all_graphs_.queued.add(queued(call, call.begin));
}

void MeasuredWorks::add_graph(std::uint32_t place, std::uint64_t time) {
  graphs_[place].times.add(time);
  all_graphs_.times.add(time);
}

std::uint32_t MeasuredWorks::place_of_graph(const LaunchedGraph* graph) {
  auto [at, is_new] =
      places_of_graphs_.try_emplace(graph, static_cast<std::uint32_t>(graphs_.size()));
  if (is_new) graphs_.emplace_back();
  return at->second;
}

const WorkFigures* MeasuredWorks::graph(const LaunchedGraph* graph) const {
  auto at = places_of_graphs_.find(graph);
  if (at == places_of_graphs_.end() || !graphs_[at->second].times.count()) return nullptr;
  return &graphs_[at->second];
}

std::vector<MeasuredWorks::OfDirection> MeasuredWorks::copies() const {
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
