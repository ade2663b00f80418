#include "analyze/export/perfetto_trace.hpp"

#include <fmt/format.h>
#include <zlib.h>

namespace cudabpf::analyze {

namespace {

// Fields of Perfetto's messages, from its repository's protos/perfetto/trace/.

namespace trace {  // trace.proto
enum : std::uint32_t { PACKET = 1 };
}
namespace packet {  // trace_packet.proto
enum : std::uint32_t {
  CLOCK_SNAPSHOT = 6,
  TIMESTAMP = 8,  // of CLOCK_BOOTTIME, in ns
  SEQUENCE_ID = 10,
  TRACK_EVENT = 11,
  INTERNED_DATA = 12,
  SEQUENCE_FLAGS = 13,
  COMPRESSED_PACKETS = 50,
  TRACK_DESCRIPTOR = 60,
};
enum SequenceFlags : std::uint32_t { STATE_CLEARED = 1, NEEDS_STATE = 2 };
}  // namespace packet
namespace clock_snapshot {  // clock_snapshot.proto
enum : std::uint32_t { CLOCKS = 1 };
enum Clock : std::uint32_t { CLOCK_ID = 1, TIMESTAMP = 2 };
enum BuiltinClock : std::uint32_t { REALTIME = 1, MONOTONIC = 3, BOOTTIME = 6 };
}  // namespace clock_snapshot
namespace track_descriptor {  // track_event/track_descriptor.proto
enum : std::uint32_t { UUID = 1, NAME = 2, PROCESS = 3, THREAD = 4, PARENT_UUID = 5, COUNTER = 8 };
enum ProcessDescriptor : std::uint32_t { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum ThreadDescriptor : std::uint32_t { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum CounterDescriptor : std::uint32_t { COUNTER_UNIT = 3 };
enum CounterUnit : std::uint32_t { COUNT = 2, SIZE_BYTES = 3 };
}  // namespace track_descriptor
namespace track_event {  // track_event/track_event.proto
enum : std::uint32_t {
  CATEGORY_IIDS = 3,
  DEBUG_ANNOTATIONS = 4,
  TYPE = 9,
  NAME_IID = 10,
  TRACK_UUID = 11,
  NAME = 23,
  COUNTER_VALUE = 30,
  FLOW_IDS = 47,
  TERMINATING_FLOW_IDS = 48,
};
enum Type : std::uint32_t { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
}  // namespace track_event
namespace annotation {  // track_event/debug_annotation.proto
enum : std::uint32_t {
  NAME_IID = 1,
  UINT_VALUE = 3,
  INT_VALUE = 4,
  STRING_VALUE = 6,
  POINTER_VALUE = 7,
  NAME = 10,
  STRING_VALUE_IID = 17,
};
}
namespace interned {  // interned_data/interned_data.proto, which has PerfettoTrace's tables
enum : std::uint32_t { ANNOTATION_NAMES = 3 };
enum Entry : std::uint32_t { IID = 1, TEXT = 2 };
}  // namespace interned

constexpr std::uint64_t SEQUENCE = 1;  // there is one writer
// Arrows to a GPU have their call's number, all others numbers of their own.
constexpr std::uint64_t BEYOND_OTHER_FLOWS = std::uint64_t{1} << 62;

// Readers take at most 512 KiB at once: packets are gathered up to BATCH, and the one that goes
// beyond it has few texts.
constexpr std::size_t BATCH = std::size_t{256} << 10;
constexpr std::size_t MAX_TEXT = std::size_t{16} << 10;

// At most MAX_TEXT bytes of it, in whole characters.
std::string_view fitting(std::string_view text) {
  if (text.size() <= MAX_TEXT) return text;
  std::size_t end = MAX_TEXT;
  while (end && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) end--;
  return text.substr(0, end);
}

// The names of annotations are known beforehand, and numbered in order.
constexpr std::uint64_t detail_number(Detail detail) {
  return static_cast<std::uint64_t>(detail) + 1;
}

ProtobufMessage entry(std::uint64_t number, std::string_view text) {
  ProtobufMessage entry;
  entry.number(interned::IID, number);
  entry.text(interned::TEXT, text);
  return entry;
}

}  // namespace

// Puts the details of a line into the event.
class PerfettoTrace::Annotations {
 public:
  explicit Annotations(PerfettoTrace& trace) : trace_(trace) {}

  void name(Detail detail, Name name) {
    put(detail, [&](ProtobufMessage& to) {
      to.number(annotation::STRING_VALUE_IID, trace_.intern(trace_.strings_, name));
    });
  }
  void text(Detail detail, std::string_view text) {
    put(detail, [&](ProtobufMessage& to) { to.text(annotation::STRING_VALUE, text); });
  }
  void number(Detail detail, std::uint64_t number) {
    put(detail, [&](ProtobufMessage& to) { to.number(annotation::UINT_VALUE, number); });
  }
  void number(Detail detail, std::uint32_t number) { this->number(detail, std::uint64_t{number}); }
  void number(Detail detail, std::int64_t number) {
    put(detail, [&](ProtobufMessage& to) {
      to.number(annotation::INT_VALUE, static_cast<std::uint64_t>(number));
    });
  }
  void address(Detail detail, std::uint64_t address) {
    put(detail, [&](ProtobufMessage& to) { to.number(annotation::POINTER_VALUE, address); });
  }
  void dimensions(Detail detail, const Dimensions& sizes) {
    put(detail, [&](ProtobufMessage& to) {
      if (std::uint64_t known = trace_.intern(sizes))
        to.number(annotation::STRING_VALUE_IID, known);
      else
        to.text(annotation::STRING_VALUE, text_of(sizes));
    });
  }
  static std::string text_of(const Dimensions& sizes) {
    return fmt::format("{}, {}, {}", sizes[0], sizes[1], sizes[2]);
  }

 private:
  template <typename Value>
  void put(Detail detail, Value&& value) {
    trace_.annotation_.clear();
    trace_.annotation_.number(annotation::NAME_IID, detail_number(detail));
    value(trace_.annotation_);
    trace_.event_.message(track_event::DEBUG_ANNOTATIONS, trace_.annotation_);
  }

  PerfettoTrace& trace_;
};

void PerfettoTrace::start(const TraceClocks& clocks) {
  boottime_ = clocks.boottime;
  ProtobufMessage snapshot;
  for (auto [id, time] : {std::pair{clock_snapshot::REALTIME, clocks.realtime},
                          {clock_snapshot::MONOTONIC, clocks.monotonic},
                          {clock_snapshot::BOOTTIME, clocks.boottime}}) {
    ProtobufMessage clock;
    clock.number(clock_snapshot::CLOCK_ID, id);
    clock.number(clock_snapshot::TIMESTAMP, time);
    snapshot.message(clock_snapshot::CLOCKS, clock);
  }
  for (std::size_t i = 0; i < std::size(DETAILS); i++)
    interned_.message(interned::ANNOTATION_NAMES, entry(i + 1, DETAILS[i]));
  packet_.number(packet::TIMESTAMP, boottime_);
  packet_.number(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
  packet_.message(packet::CLOCK_SNAPSHOT, snapshot);
  put_packet();
}

void PerfettoTrace::track(const Track& track) {
  ProtobufMessage descriptor, of;
  descriptor.number(track_descriptor::UUID, track.id);
  if (track.parent) descriptor.number(track_descriptor::PARENT_UUID, track.parent);
  switch (track.kind) {
    case Track::Kind::process:
      of.number(track_descriptor::PROCESS_PID, track.pid);
      if (!track.name.empty()) of.text(track_descriptor::PROCESS_NAME, fitting(track.name));
      descriptor.message(track_descriptor::PROCESS, of);
      break;
    case Track::Kind::thread:
      of.number(track_descriptor::THREAD_PID, track.pid);
      of.number(track_descriptor::THREAD_TID, track.tid);
      if (!track.name.empty()) of.text(track_descriptor::THREAD_NAME, fitting(track.name));
      descriptor.message(track_descriptor::THREAD, of);
      break;
    case Track::Kind::counter:
      of.number(track_descriptor::COUNTER_UNIT,
                track.bytes ? track_descriptor::SIZE_BYTES : track_descriptor::COUNT);
      descriptor.message(track_descriptor::COUNTER, of);
      [[fallthrough]];
    default:
      descriptor.text(track_descriptor::NAME, fitting(track.name));
  }
  packet_.message(packet::TRACK_DESCRIPTOR, descriptor);
  put_packet();
}

void PerfettoTrace::begin(const Track& track, const Line& line, const Label& label, Shape shape,
                          const Flows& flows) {
  start_event(shape == Shape::instant ? track_event::INSTANT : track_event::SLICE_BEGIN, track);
  if (line.kind == LineKind::gpu_operation && !line.kernel)  // as many names as sizes of copies
    event_.text(track_event::NAME, label.name);
  else
    event_.number(track_event::NAME_IID, intern_event(line, label.name));
  if (line.kind == LineKind::call || line.kind == LineKind::gpu_operation)
    event_.number(track_event::CATEGORY_IIDS, intern(categories_, category_of(line)));
  details_of(line, names_, label.kernels, flows.queued, Annotations(*this));
  for (std::uint64_t flow : flows.begin) event_.fixed64(track_event::FLOW_IDS, flow);
  if (flows.enqueues) event_.fixed64(track_event::FLOW_IDS, flows.enqueues);
  if (flows.issuing) event_.fixed64(track_event::FLOW_IDS, BEYOND_OTHER_FLOWS + flows.issuing);
  if (flows.end) event_.fixed64(track_event::TERMINATING_FLOW_IDS, flows.end);
  if (flows.issued_by)
    event_.fixed64(track_event::TERMINATING_FLOW_IDS, BEYOND_OTHER_FLOWS + flows.issued_by);
  put_event(line.ts, true);
}

void PerfettoTrace::end(const Track& track, const Line& line) {
  start_event(track_event::SLICE_END, track);
  put_event(line.end(), false);
}

void PerfettoTrace::enqueued(const Track& stream, const Line& call, std::string_view name,
                             std::uint64_t flow) {
  start_event(track_event::INSTANT, stream);
  event_.number(track_event::NAME_IID, intern_event(call, name));
  if (flow) event_.fixed64(track_event::TERMINATING_FLOW_IDS, flow);
  put_event(call.ts, true);
}

void PerfettoTrace::counter(const Track& counter, std::uint64_t ts, std::uint64_t value) {
  start_event(track_event::COUNTER, counter);
  event_.number(track_event::COUNTER_VALUE, value);
  put_event(ts, false);
}

void PerfettoTrace::note(const Track& track, std::uint64_t ts, std::string_view name,
                         const Facts& facts) {
  start_event(track_event::INSTANT, track);
  event_.text(track_event::NAME, fitting(name));
  put(facts);
  put_event(ts, false);
}

void PerfettoTrace::span(const Track& track, const TimeSpan& when, std::string_view name,
                         const Facts& facts) {
  start_event(track_event::SLICE_BEGIN, track);
  event_.text(track_event::NAME, fitting(name));
  put(facts);
  put_event(when.begin, false);
  start_event(track_event::SLICE_END, track);
  put_event(when.end, false);
}

void PerfettoTrace::put(const Facts& facts) {
  for (const auto& [fact, what] : facts) {
    if (what.empty()) continue;
    annotation_.clear();
    annotation_.text(annotation::NAME, fact);
    annotation_.text(annotation::STRING_VALUE, fitting(what));
    event_.message(track_event::DEBUG_ANNOTATIONS, annotation_);
  }
}

std::uint64_t PerfettoTrace::intern(Interned& table, Name name, std::string_view text) {
  if (table.name.size() <= name.id) table.name.resize(names_.size());
  std::uint32_t& number = table.name[name.id];
  if (!number) number = static_cast<std::uint32_t>(add(table, text));
  return number;
}

std::uint64_t PerfettoTrace::intern_event(const Line& line, std::string_view name) {
  return intern(event_names_, is_named_by_kernel(line) ? line.kernel : line.name, name);
}

std::uint64_t PerfettoTrace::intern(const Dimensions& dimensions) {
  auto known = dimensions_.find(dimensions);
  if (known != dimensions_.end()) return known->second;
  if (dimensions_.size() >= MAX_DIMENSIONS) return 0;
  return dimensions_[dimensions] = add(strings_, Annotations::text_of(dimensions));
}

std::uint64_t PerfettoTrace::add(Interned& table, std::string_view text) {
  interned_.message(table.field, entry(++table.last, fitting(text)));
  return table.last;
}

void PerfettoTrace::start_event(std::uint64_t type, const Track& track) {
  event_.clear();
  event_.number(track_event::TYPE, type);
  event_.number(track_event::TRACK_UUID, track.id);
}

void PerfettoTrace::put_event(std::uint64_t ts, bool names) {
  packet_.number(packet::TIMESTAMP, boottime_ + ts);
  if (names) packet_.number(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
  packet_.message(packet::TRACK_EVENT, event_);
  put_packet();
}

void PerfettoTrace::put_packet() {
  packet_.number(packet::SEQUENCE_ID, SEQUENCE);
  if (!interned_.empty()) packet_.message(packet::INTERNED_DATA, interned_);
  batch_.message(trace::PACKET, packet_);
  if (batch_.bytes().size() >= BATCH) put_batch();
  packet_.clear();
  interned_.clear();
}

void PerfettoTrace::put_batch() {
  std::string_view bytes = batch_.bytes();
  if (packets_ == Packets::deflated && !bytes.empty()) {
    constexpr int FASTEST = 1;  // higher levels make it no smaller
    uLongf size = ::compressBound(bytes.size());
    std::string deflated(size, '\0');
    ::compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), FASTEST);
    deflated.resize(size);
    ProtobufMessage packet, trace;
    packet.text(packet::COMPRESSED_PACKETS, deflated);
    trace.message(trace::PACKET, packet);
    out_.text(trace.bytes());
  } else {
    out_.text(bytes);
  }
  batch_.clear();
}

void PerfettoTrace::finish(const TraceFacts&) { put_batch(); }

}  // namespace cudabpf::analyze
