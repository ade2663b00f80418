// Hands a picture on to its writers, and names what is on it. Its beginning is held back until the
// names of the kernels are known: how short a name may be follows from the others.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/export/track_writer.hpp"
#include "analyze/short_names.hpp"

namespace cudabpf::analyze {

class HeldTracks {
 public:
  using Shape = TrackWriter::Shape;
  using Flows = TrackWriter::Flows;
  using Facts = TrackWriter::Facts;

  HeldTracks(const Names& names, std::vector<TrackWriter*> writers)
      : names_(names), kernels_(names), writers_(std::move(writers)) {}

  // A line that is not on the picture names a kernel, too.
  void outside(const Line& line) {
    if (!released_) kernels_.line(line);
  }
  // So does one that says what a graph holds.
  void graph(const Line& line) { outside(line); }
  void start(const TraceClocks& clocks);
  void track(const Track& track);
  void begin(const Track& track, const Line& line, Shape shape, const Flows& flows);
  void end(const Track& track, const Line& line);
  void enqueued(const Track& stream, const Line& call, std::uint64_t flow);
  void counter(const Track& counter, std::uint64_t ts, std::uint64_t value);
  void note(const Track& track, std::uint64_t ts, std::string_view name, const Facts& facts);
  void span(const Track& track, const TimeSpan& when, std::string_view name, const Facts& facts);
  void finish(const TraceFacts& facts);

 private:
  // Programs launch most of their kernels for the first time early on.
  static constexpr std::size_t HELD = 1 << 15;

  static constexpr std::size_t MAX_GRAPHS = 1 << 12;  // whose kernels are listed again at once

  using Event = std::function<void(TrackWriter&)>;
  void hold(Event event);
  void release();
  std::string_view name_of(const Line& line);  // valid until the next call
  TrackWriter::Label label_of(const Line& line);
  std::string_view kernels_of(const LaunchedGraph& graph);
  template <typename Write>
  void each(Write&& write) {
    for (TrackWriter* writer : writers_) write(*writer);
  }

  const Names& names_;
  ShortNames kernels_;
  std::vector<TrackWriter*> writers_;
  std::unordered_map<const LaunchedGraph*, std::string> graphs_;  // what runs in each
  std::string work_name_;
  std::vector<Event> held_;
  bool released_ = false;
};

}  // namespace cudabpf::analyze
