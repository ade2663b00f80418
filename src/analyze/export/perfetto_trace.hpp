// A timeline in Perfetto's own format, a sequence of TracePackets in Protocol Buffers, which
// ui.perfetto.dev and trace_processor open: https://perfetto.dev/docs/reference/trace-packet-proto
// Texts are interned: written once, then referred to by number. Packets are deflated in batches, as
// Perfetto itself does: they then take about a twentieth of the trace's lines, otherwise a quarter.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "analyze/export/byte_stream.hpp"
#include "analyze/export/line_details.hpp"
#include "analyze/export/track_writer.hpp"
#include "util/protobuf.hpp"

namespace cudabpf::analyze {

class PerfettoTrace : public TrackWriter {
 public:
  enum class Packets : std::uint8_t { deflated, plain };

  PerfettoTrace(const Names& names, ByteStream& out, Packets packets)
      : names_(names), out_(out), packets_(packets) {}

  void start(const TraceClocks& clocks) override;
  void track(const Track& track) override;
  void begin(const Track& track, const Line& line, const Label& label, Shape shape,
             const Flows& flows) override;
  void end(const Track& track, const Line& line) override;
  void enqueued(const Track& stream, const Line& call, std::string_view name,
                std::uint64_t flow) override;
  void counter(const Track& counter, std::uint64_t ts, std::uint64_t value) override;
  void note(const Track& track, std::uint64_t ts, std::string_view name,
            const Facts& facts) override;
  void span(const Track& track, const TimeSpan& when, std::string_view name,
            const Facts& facts) override;
  void finish(const TraceFacts& facts) override;

 private:
  using Dimensions = std::array<std::uint32_t, 3>;
  static constexpr std::size_t MAX_DIMENSIONS = 1 << 12;  // interned at most

  // A table of interned texts.
  struct Interned {
    std::uint32_t field;              // of InternedData
    std::uint32_t last = 0;           // the highest number given
    std::vector<std::uint32_t> name;  // the number of each Name; 0: it has none yet
  };
  class Annotations;

  std::uint64_t intern(Interned& table, Name name) {
    return intern(table, name, names_.text(name));
  }
  std::uint64_t intern(Interned& table, Name name, std::string_view text);
  std::uint64_t intern_event(const Line& line, std::string_view name);
  std::uint64_t intern(const Dimensions& dimensions);  // 0: there are too many
  std::uint64_t add(Interned& table, std::string_view text);

  void start_event(std::uint64_t type, const Track& track);
  // Puts the event into a packet; `names`: it refers to interned texts.
  void put_event(std::uint64_t ts, bool names);
  void put(const Facts& facts);
  void put_packet();
  void put_batch();

  const Names& names_;
  ByteStream& out_;
  Packets packets_;
  std::uint64_t boottime_ = 0;  // at ts 0

  Interned event_names_{.field = 2, .name = {}};
  Interned categories_{.field = 1, .name = {}};
  Interned strings_{.field = 29, .name = {}};
  std::map<Dimensions, std::uint64_t> dimensions_;

  // Messages under construction: kept to reuse their memory.
  ProtobufMessage batch_, packet_, event_, interned_, annotation_;
};

}  // namespace cudabpf::analyze
