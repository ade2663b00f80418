// A timeline in the Trace Event Format of Chrome, which chrome://tracing and ui.perfetto.dev open:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once

#include <string_view>

#include "analyze/export/byte_stream.hpp"
#include "analyze/export/track_writer.hpp"
#include "trace/read/names.hpp"

namespace cudabpf::analyze {

class ChromeTrace : public TrackWriter {
 public:
  ChromeTrace(const Names& names, ByteStream& out) : names_(names), out_(out) {}

  void start(const TraceClocks&) override;
  void track(const Track& track) override;
  void begin(const Track& track, const Line& line, const Label& label, Shape shape,
             const Flows& flows) override;
  void end(const Track&, const Line&) override {}  // begin() wrote the duration
  void enqueued(const Track& stream, const Line& call, std::string_view name,
                std::uint64_t flow) override;
  void counter(const Track& counter, std::uint64_t ts, std::uint64_t value) override;
  void note(const Track& track, std::uint64_t ts, std::string_view name,
            const Facts& facts) override;
  void span(const Track& track, const TimeSpan& when, std::string_view name,
            const Facts& facts) override;
  void finish(const TraceFacts& facts) override;

 private:
  void event(std::string_view phase, const Track& track);
  void event(std::string_view phase, const Track& track, std::uint64_t ts);
  void flow(const Flows& flows, const Track& track, std::uint64_t ts);
  void issues_gpu_operation(bool begins, std::uint64_t call, const Track& track, std::uint64_t ts);
  void sort(const Track& track, int index);
  void binds(std::uint64_t flow, const char* direction);
  void put(const Facts& facts);
  void metadata(std::string_view what, const Track& track, std::string_view name);
  void key(std::string_view key);
  void string(std::string_view text);
  void time(std::uint64_t ns);

  const Names& names_;
  ByteStream& out_;
  bool first_ = true;
};

}  // namespace cudabpf::analyze
