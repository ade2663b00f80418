// The tracks that are drawn of a trace, as lines.
#pragma once

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "analyze/export/tracks.hpp"
#include "support/analyzing.hpp"

namespace cudabpf::analyze {

// Writes down each thing that is drawn, in a line.
class Notes : public TrackWriter {
 public:
  explicit Notes(const Names& names) : names_(names) {}

  void start(const TraceClocks& clocks) override { add("boottime {}", clocks.boottime); }
  void track(const Track& track) override {
    bool execution = track.kind == Track::Kind::phases || track.kind == Track::Kind::iterations;
    (execution ? execution_tracks : tracks)
        .push_back(fmt::format("{}<{} {}/{} as {} {}", track.id, track.parent, track.pid, track.tid,
                               track.process, track.name));
  }
  void begin(const Track& track, const Line& line, const Label& label, Shape shape,
             const Flows& flows) override {
    std::string arrows;
    for (std::uint64_t flow : flows.begin) arrows += fmt::format(" >{}", flow);
    if (flows.enqueues) arrows += fmt::format(" >>{}", flows.enqueues);
    if (flows.end) arrows += fmt::format(" {}>{}", flows.caller->id, flows.end);
    if (flows.issuing) arrows += fmt::format(" issues {}", flows.issuing);
    if (flows.issued_by) arrows += fmt::format(" issued by {}", flows.issued_by);
    if (flows.queued) arrows += fmt::format(" after {}", *flows.queued);
    add("{} {} {} at {}{}", track.id,
        shape == Shape::slice     ? "begin"
        : shape == Shape::endless ? "endless"
                                  : "point",
        label.name, line.ts, arrows);
  }
  void end(const Track& track, const Line& line) override {
    add("{} end {} at {}", track.id, names_.text(line.name), line.end());
  }
  void enqueued(const Track& stream, const Line& call, std::string_view,
                std::uint64_t flow) override {
    add("{} enqueued at {}{}", stream.id, call.ts, flow ? fmt::format(" >>{}", flow) : "");
  }
  void counter(const Track& counter, std::uint64_t ts, std::uint64_t value) override {
    add("{} is {} at {}", counter.name, value, ts);
  }
  void note(const Track& track, std::uint64_t ts, std::string_view name,
            const Facts& facts) override {
    std::string text;
    for (const auto& [fact, what] : facts) text += fmt::format(", {} {}", fact, what);
    add("{}: {} at {}{}", track.name, name, ts, text);
  }
  void span(const Track& track, const TimeSpan& when, std::string_view name,
            const Facts& facts) override {
    std::string text;
    for (const auto& [fact, what] : facts)
      if (!what.empty()) text += fmt::format(", {} {}", fact, what);
    spans.push_back(
        fmt::format("{} {} from {} to {}{}", track.id, name, when.begin, when.end, text));
  }
  void finish(const TraceFacts&) override { add("the end"); }

  // Those of phases and iterations, which any trace with a call has, are apart.
  std::vector<std::string> tracks, events, execution_tracks, spans;

 private:
  template <typename... T>
  void add(fmt::format_string<T...> format, T&&... args) {
    events.push_back(fmt::format(format, std::forward<T>(args)...));
  }

  const Names& names_;
};

struct DrawnTracks {
  std::vector<std::string> tracks, events, execution_tracks, spans;
};

inline DrawnTracks draw(const std::string& text, const TraceFacts& facts = {}, Part part = {}) {
  LineParser parser;
  Notes notes(parser.names());
  Tracks tracks(parser.names(), {&notes}, part);
  auto seen = each_line(parser, text, [&](const Line& line) {
    part.has(line) ? tracks.line(line) : tracks.outside(line);
  });
  tracks.finish(facts);
  REQUIRE(!notes.events.empty());
  CHECK(notes.events.back() == "the end");
  notes.events.pop_back();
  return {notes.tracks, notes.events, notes.execution_tracks, notes.spans};
}

using Lines = std::vector<std::string>;

inline std::string took(int from, int to) {
  return fmt::format(R"("ts":{},"duration_us":0.{:03})", from, to - from);
}

}  // namespace cudabpf::analyze
