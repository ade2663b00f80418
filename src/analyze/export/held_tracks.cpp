#include "analyze/export/held_tracks.hpp"

#include <fmt/format.h>

#include <string>

#include "analyze/derived/graph_contents.hpp"
#include "analyze/lanes/gpu_queues.hpp"
#include "util/console/terminal.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

// What may be kept of a line when the next one is read.
Line kept(const Line& line) {
  Line kept = line;
  kept.text = kept.args = {};
  kept.process = nullptr;
  kept.issuer = nullptr;
  kept.gone = {};
  return kept;
}

}  // namespace

void HeldTracks::hold(Event event) {
  held_.push_back(std::move(event));
  if (held_.size() == HELD) release();
}

void HeldTracks::release() {
  released_ = true;
  kernels_.settle();
  for (const Event& event : held_) each(event);
  held_ = {};
}

// A launch is named by its kernel.
std::string_view HeldTracks::name_of(const Line& line) {
  if (is_named_by_kernel(line)) return kernels_.learned(line.kernel);
  if (line.kind != LineKind::gpu_operation) return names_.text(line.name);
  return work_name_ = work_name(line, names_);
}

TrackWriter::Label HeldTracks::label_of(const Line& line) {
  bool launches = line.content && line.kind == LineKind::call;
  return {name_of(line), launches ? kernels_of(*line.content) : std::string_view()};
}

std::string_view HeldTracks::kernels_of(const LaunchedGraph& graph) {
  constexpr std::size_t NAMED = 10, NAME_WIDTH = 100;
  if (graphs_.size() >= MAX_GRAPHS) graphs_.clear();  // no label is in use
  auto [at, is_new] = graphs_.try_emplace(&graph);
  std::string& text = at->second;
  if (!is_new) return text;
  std::uint64_t listed = 0, named = 0;
  for (const NodesAlike& nodes : graph.list) {
    if (nodes.what != NodeWork::kernel || nodes.conditional || !nodes.count) continue;
    if (named++ == NAMED) break;
    std::string_view name = nodes.kernel ? kernels_.learned(nodes.kernel) : "(no name)";
    text += (text.empty() ? "" : ", ") + shortened(std::string(name), NAME_WIDTH);
    if (nodes.count > 1) text += fmt::format(" ×{}", nodes.count);
    listed = saturating_sum(listed, nodes.count);
  }
  if (listed < graph.kernels) text += fmt::format(", {} more", graph.kernels - listed);
  return text;
}

void HeldTracks::start(const TraceClocks& clocks) {
  each([&](TrackWriter& writer) { writer.start(clocks); });
}

void HeldTracks::track(const Track& track) {
  if (released_) return each([&](TrackWriter& writer) { writer.track(track); });
  hold([track](TrackWriter& writer) { writer.track(track); });
}

void HeldTracks::begin(const Track& track, const Line& line, Shape shape, const Flows& flows) {
  if (released_) {
    TrackWriter::Label label = label_of(line);
    return each([&](TrackWriter& writer) { writer.begin(track, line, label, shape, flows); });
  }
  kernels_.line(line);
  std::vector<std::uint64_t> begun(flows.begin.begin(), flows.begin.end());
  std::vector<Track> caller;
  if (flows.caller) caller.push_back(*flows.caller);
  hold([=, this, line = kept(line), flows = flows](TrackWriter& writer) {
    Flows own = flows;
    own.begin = begun;
    own.caller = caller.empty() ? nullptr : &caller.front();
    writer.begin(track, line, label_of(line), shape, own);
  });
}

void HeldTracks::end(const Track& track, const Line& line) {
  if (released_) return each([&](TrackWriter& writer) { writer.end(track, line); });
  hold([track, line = kept(line)](TrackWriter& writer) { writer.end(track, line); });
}

void HeldTracks::enqueued(const Track& stream, const Line& call, std::uint64_t flow) {
  if (released_) {
    std::string_view name = name_of(call);
    return each([&](TrackWriter& writer) { writer.enqueued(stream, call, name, flow); });
  }
  hold([this, stream, call = kept(call), flow](TrackWriter& writer) {
    writer.enqueued(stream, call, name_of(call), flow);
  });
}

void HeldTracks::counter(const Track& counter, std::uint64_t ts, std::uint64_t value) {
  if (released_) return each([&](TrackWriter& writer) { writer.counter(counter, ts, value); });
  hold([counter, ts, value](TrackWriter& writer) { writer.counter(counter, ts, value); });
}

void HeldTracks::note(const Track& track, std::uint64_t ts, std::string_view name,
                      const Facts& facts) {
  if (released_) return each([&](TrackWriter& writer) { writer.note(track, ts, name, facts); });
  hold([track, ts, name = std::string(name), facts](TrackWriter& writer) {
    writer.note(track, ts, name, facts);
  });
}

void HeldTracks::span(const Track& track, const TimeSpan& when, std::string_view name,
                      const Facts& facts) {
  if (released_) return each([&](TrackWriter& writer) { writer.span(track, when, name, facts); });
  hold([track, when, name = std::string(name), facts](TrackWriter& writer) {
    writer.span(track, when, name, facts);
  });
}

void HeldTracks::finish(const TraceFacts& facts) {
  if (!released_) release();
  each([&](TrackWriter& writer) { writer.finish(facts); });
}

}  // namespace cudabpf::analyze
