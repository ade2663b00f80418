#include "analyze/export/chrome_trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyze/export/line_details.hpp"
#include "util/text/json.hpp"

namespace cudabpf::analyze {

namespace {

// Chrome knows only processes and threads: every other track is a thread with a number beyond any
// that Linux uses.
constexpr std::uint32_t BEYOND_TIDS = 10'000'000;
// Arrows to streams are written in another way than those to driver operations, and have numbers of
// their own.
constexpr std::uint64_t BEYOND_FLOWS = std::uint64_t{1} << 40;

std::uint32_t tid_of(const Track& track) {
  return track.kind == Track::Kind::thread ? track.tid : BEYOND_TIDS + track.id;
}

// The details of a line as the members of an object.
class Members {
 public:
  explicit Members(ByteStream& out, const Names& names) : out_(out), names_(names) {}

  void name(Detail detail, Name name) { text(detail, names_.text(name)); }
  void text(Detail detail, std::string_view text) {
    key(detail);
    char* at = out_.room(2 + json::MAX_EXPANSION * text.size());
    out_.wrote(json::put_string(at, text));
  }
  template <typename Integer>
  void number(Detail detail, Integer value) {
    key(detail);
    out_.number(value);
  }
  void address(Detail detail, std::uint64_t address) {
    key(detail);
    out_.wrote(json::put_address(out_.room(json::MAX_ADDRESS), address));
  }
  void dimensions(Detail detail, const std::array<std::uint32_t, 3>& sizes) {
    key(detail);
    for (std::size_t i = 0; i < sizes.size(); i++) {
      out_.text(i ? "," : "[");
      out_.number(sizes[i]);
    }
    out_.text("]");
  }

 private:
  void key(Detail detail) {
    out_.text(first_ ? "\"" : ",\"");
    out_.text(DETAILS[static_cast<std::size_t>(detail)]);
    out_.text("\":");
    first_ = false;
  }

  ByteStream& out_;
  const Names& names_;
  bool first_ = true;
};

}  // namespace

void ChromeTrace::start(const TraceClocks&) { out_.text("{\"traceEvents\":["); }

void ChromeTrace::finish(const TraceFacts& facts) {
  out_.text("\n],\"displayTimeUnit\":\"ns\",\"otherData\":");
  out_.text(json::without_invisible(
      facts_json(facts).dump(-1, ' ', false, Json::error_handler_t::replace)));
  out_.text("}\n");
}

void ChromeTrace::track(const Track& track) {
  if (track.kind == Track::Kind::counter || track.kind == Track::Kind::gpu) return;
  if (track.kind == Track::Kind::machine) metadata("process_name", track, "machine");
  if (track.name.empty()) return;
  // Phases come first in their process, then iterations, then everything else, its GPUs last.
  if (track.kind == Track::Kind::phases) sort(track, -2);
  if (track.kind == Track::Kind::iterations) sort(track, -1);
  if (track.kind == Track::Kind::queue) sort(track, 1);
  if (track.kind == Track::Kind::queue)
    metadata("thread_name", track, fmt::format("{}, {}", track.group, track.name));
  else if (track.kind != Track::Kind::process)
    metadata("thread_name", track, track.name);
  else if (track.process == track.pid)
    metadata("process_name", track, track.name);
  else  // its number is not its pid
    metadata("process_name", track, fmt::format("{} (another process {})", track.name, track.pid));
}

void ChromeTrace::sort(const Track& track, int index) {
  event("M", track);
  out_.text(R"(,"name":"thread_sort_index","args":{"sort_index":)");
  out_.number(index);
  out_.text("}}");
}

void ChromeTrace::metadata(std::string_view what, const Track& track, std::string_view name) {
  event("M", track);
  key("name");
  string(what);
  out_.text(",\"args\":{\"name\":");
  string(name);
  out_.text("}}");
}

void ChromeTrace::begin(const Track& track, const Line& line, const Label& label, Shape shape,
                        const Flows& flows) {
  event(shape == Shape::slice ? "X" : shape == Shape::endless ? "B" : "i", track, line.ts);
  if (shape == Shape::slice) {
    key("dur");
    time(line.duration);
  } else if (shape == Shape::instant) {
    out_.text(",\"s\":\"t\"");
  }
  if (flows.enqueues) binds(flows.enqueues, "out");
  key("name");
  string(label.name);
  key("cat");
  string(names_.text(category_of(line)));
  out_.text(",\"args\":{");
  details_of(line, names_, label.kernels, flows.queued, Members(out_, names_));
  out_.text("}}");
  if (flows.end) flow(flows, track, line.ts);
  if (flows.issuing) issues_gpu_operation(true, flows.issuing, track, line.ts);
  if (flows.issued_by) issues_gpu_operation(false, flows.issued_by, track, line.ts);
}

// An end of an arrow, on the slice that is being written. A slice can have only one such.
void ChromeTrace::binds(std::uint64_t flow, const char* direction) {
  out_.text(",\"bind_id\":");
  out_.number(BEYOND_FLOWS + flow);
  out_.text(",\"flow_");
  out_.text(direction);
  out_.text("\":true");
}

// An arrow from the call that is under way at `ts`. Both ends are written where it ends, since both
// are known only there.
void ChromeTrace::flow(const Flows& flows, const Track& track, std::uint64_t ts) {
  for (bool begins : {true, false}) {
    event(begins ? "s" : "f", begins ? *flows.caller : track, ts);
    if (!begins) out_.text(",\"bp\":\"e\"");
    out_.text(R"(,"name":"asks the driver","cat":"flow","id":)");
    out_.number(flows.end);
    out_.text("}");
  }
}

// An end of an arrow from a call to what a GPU did: each is written with its slice.
void ChromeTrace::issues_gpu_operation(bool begins, std::uint64_t call, const Track& track,
                                       std::uint64_t ts) {
  event(begins ? "s" : "f", track, ts);
  if (!begins) out_.text(",\"bp\":\"e\"");
  out_.text(R"(,"name":"asks the GPU","cat":"gpu","id":)");
  out_.number(call);
  out_.text("}");
}

// A slice without duration, since no arrow leads to a point.
void ChromeTrace::enqueued(const Track& stream, const Line& call, std::string_view name,
                           std::uint64_t flow) {
  event("X", stream, call.ts);
  out_.text(R"(,"dur":0,"cat":"enqueued")");
  if (flow) binds(flow, "in");
  key("name");
  string(name);
  key("args");
  out_.text("{\"call\":");
  out_.number(call.id);
  out_.text("}}");
}

void ChromeTrace::counter(const Track& counter, std::uint64_t ts, std::uint64_t value) {
  event("C", counter, ts);
  key("name");
  string(counter.name);
  out_.text(counter.bytes ? ",\"args\":{\"bytes\":" : ",\"args\":{\"count\":");
  out_.number(value);
  out_.text("}}");
}

void ChromeTrace::note(const Track& track, std::uint64_t ts, std::string_view name,
                       const Facts& facts) {
  event("i", track, ts);
  out_.text(",\"s\":\"g\"");
  key("name");
  string(name);
  put(facts);
}

void ChromeTrace::span(const Track& track, const TimeSpan& when, std::string_view name,
                       const Facts& facts) {
  event("X", track, when.begin);
  key("dur");
  time(when.time());
  out_.text(R"(,"cat":"execution")");
  key("name");
  string(name);
  put(facts);
}

void ChromeTrace::put(const Facts& facts) {
  out_.text(",\"args\":{");
  bool first = true;
  for (const auto& [fact, what] : facts) {
    if (what.empty()) continue;
    if (!first) out_.text(",");
    first = false;
    string(fact);
    out_.text(":");
    string(what);
  }
  out_.text("}}");
}

void ChromeTrace::event(std::string_view phase, const Track& track) {
  out_.text(first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
  first_ = false;
  out_.text(phase);
  out_.text("\",\"pid\":");
  out_.number(track.process);
  out_.text(",\"tid\":");
  out_.number(tid_of(track));
}

void ChromeTrace::event(std::string_view phase, const Track& track, std::uint64_t ts) {
  event(phase, track);
  key("ts");
  time(ts);
}

void ChromeTrace::key(std::string_view key) {
  out_.text(",\"");
  out_.text(key);
  out_.text("\":");
}

void ChromeTrace::string(std::string_view text) {
  char* at = out_.room(2 + json::MAX_EXPANSION * text.size());
  out_.wrote(json::put_string(at, text));
}

// Microseconds are the format's unit.
void ChromeTrace::time(std::uint64_t ns) {
  constexpr std::size_t DECIMALS = 4;
  out_.wrote(json::put_microseconds(out_.room(json::MAX_NUMBER + DECIMALS), ns));
}

}  // namespace cudabpf::analyze
