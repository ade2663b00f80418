#include "trace/write/event_lines.hpp"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "trace/write/gpu_lines.hpp"
#include "util/text/json.hpp"

namespace cudabpf {

namespace {

using Json = nlohmann::ordered_json;

// Text comes from traced programs and may be megabytes long. A line holds at most this much of one
// text, and of all texts in a list, because readers refuse lines that are too long.
constexpr std::size_t MAX_TEXT = 4096, MAX_LIST = 64 << 10;
constexpr const char* CUT = "…";

bool cut_text(std::string& text, std::size_t most) {
  if (text.size() <= most) return false;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) most--;
  text.resize(most);
  text += CUT;
  return true;
}

// True if any was cut.
bool cut_texts(Json& value) {
  bool cut = false;
  if (value.is_string()) return cut_text(value.get_ref<std::string&>(), MAX_TEXT);
  if (value.is_array()) {
    std::size_t size = 0;
    for (auto at = value.begin(); at != value.end(); ++at) {
      if (!at->is_string()) continue;
      size += at->get_ref<const std::string&>().size() + 1;
      if (size <= MAX_LIST) continue;
      value.erase(at, value.end());
      value.push_back(CUT);
      cut = true;
      break;
    }
  }
  if (value.is_structured())
    for (auto& part : value) cut |= cut_texts(part);
  return cut;
}

// Text need not even be UTF-8.
std::string whole_line(const Json& object) {
  return json::without_invisible(object.dump(-1, ' ', false, Json::error_handler_t::replace)) +
         "\n";
}

std::string line(Json object) {
  if (cut_texts(object)) object["text_cut"] = true;
  return whole_line(object);
}

std::string_view name_of(Feature::State state) {
  constexpr std::string_view NAMES[] = {"no", "yes", "unknown"};
  return NAMES[static_cast<int>(state)];
}

constexpr std::size_t MOST_TEXT_OF_GRAPH = 1 << 20;

Json dimensions(const Dim3& of) { return {of.x, of.y, of.z}; }

// Some nodes of a graph.
Json work_fields(const GraphWork& work, std::uint64_t count) {
  Json out = {{"op", to_string(work.what)}};
  if (work.kernel) out["kernel"] = work.kernel->full;
  if (work.kernel && work.kernel->from_handle) out["kernel_from"] = "handle";
  if (work.handle) out["handle"] = fmt::format("{:#x}", work.handle);
  if (work.has_dims) {
    out["grid"] = dimensions(work.grid);
    out["block"] = dimensions(work.block);
    out["shared"] = work.shared;
  }
  if (work.size) out["size"] = *work.size;
  out["count"] = count;
  if (work.conditional) out["conditional"] = true;
  return out;
}

std::string_view name_of(Process::Op op) {
  constexpr std::string_view NAMES[] = {"start", "fork", "exec", "exit"};
  return NAMES[static_cast<int>(op)];
}

void set_unless_empty(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

// The fields of an operation on the driver, in order: like calls, there are millions of them.
class Fields {
 public:
  void text(std::string_view key, std::string_view value) {
    wrote(json::put_string(room(key, 2 + json::MAX_EXPANSION * value.size()), value));
  }
  void number(std::string_view key, std::uint64_t value) {
    wrote(json::put_number(room(key, json::MAX_NUMBER), value));
  }
  void signed_number(std::string_view key, std::int64_t value) {
    wrote(json::put_signed(room(key, json::MAX_NUMBER), value));
  }
  void hex(std::string_view key, std::uint64_t value) {
    wrote(json::put_address(room(key, json::MAX_ADDRESS), value));
  }
  void microseconds(std::string_view key, std::uint64_t ns) {
    wrote(json::put_microseconds(room(key, json::MAX_NUMBER + 4), ns));
  }
  void flag(std::string_view key, bool set) {
    if (set) wrote(json::put(room(key, 4), "true"));
  }
  std::string line() && { return std::move(text_) + "}\n"; }

 private:
  // Where the value goes that stands behind the key, and takes `size` bytes at most.
  char* room(std::string_view key, std::size_t size) {
    std::size_t end = text_.size();
    text_.resize(end + key.size() + 4 + size);
    char* at = text_.data() + end;
    *at++ = end ? ',' : '{';
    *at++ = '"';
    at = json::put(at, key);
    return json::put(at, "\":");
  }
  void wrote(const char* end) { text_.resize(static_cast<std::size_t>(end - text_.data())); }

  std::string text_;
};

void set_ioctl(Fields& out, const IoctlDetails& details) {
  if (details.control) out.text("control", name_or_number(details.control_name, *details.control));
  if (details.klass) out.text("class", name_or_number(details.class_name, *details.klass));
  out.text("group", to_string(details.group));
  if (details.size) out.number("size", *details.size);
  if (details.base) out.hex("base", *details.base);
  if (details.client) out.hex("client", *details.client);
  if (details.parent) out.hex("parent_object", *details.parent);
  if (details.object) out.hex("object", *details.object);
  if (details.value) out.number(details.value_name, *details.value);
  out.flag("firmware", details.privileged_firmware);
}

std::string_view system_error(const DriverCall& call) {
  const char* name = call.error() ? strerrorname_np(call.error()) : nullptr;
  return name ? name : "";
}

// A page fault's handler returns bits; these mean failure (enum vm_fault_reason).
std::string_view fault_error(std::int64_t result) {
  constexpr std::pair<int, const char*> FAILURES[] = {
      {1, "VM_FAULT_OOM"}, {2, "VM_FAULT_SIGBUS"}, {0x40, "VM_FAULT_SIGSEGV"}};
  for (auto [bit, name] : FAILURES)
    if (result & bit) return name;
  return {};
}

Json library_fields(const Library& library) {
  Json fields = Json::object();
  fields["path"] = library.path;
  set_unless_empty(fields, "build_id", library.build_id);
  fields["device"] = library.device;
  fields["inode"] = library.inode;
  fields["functions"] = library.functions;
  fields["skipped"] = library.skipped;
  fields["unknown"] = library.unknown;
  if (library.left_out) fields["left_out"] = library.left_out;
  if (!library.unpatched.empty()) fields["unpatched"] = library.unpatched;
  if (library.attach_ns) fields["attach_us"] = library.attach_ns / 1000;
  set_unless_empty(fields, "error", library.error);
  return fields;
}

Json losses_by_name(const Totals& totals) {
  Json losses = Json::object();
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    if (totals.losses[i]) losses[std::string(info(static_cast<Loss>(i)).name)] = totals.losses[i];
  return losses;
}

void set_totals(Json& object, const Totals& totals) {
  object["duration_ns"] = totals.duration_ns;
  const EventCounts& counts = totals.counts;
  object["calls"] = counts.calls;
  object["unfinished"] = counts.unfinished;
  if (counts.driver_calls) object["driver_calls"] = counts.driver_calls;
  if (counts.read_faults) object["read_faults"] = counts.read_faults;
  object["losses"] = losses_by_name(totals);
}

Json accounts_of(const Totals& totals) {
  return {{"entered", totals.accounts.entered},
          {"emitted", totals.accounts.emitted},
          {"dropped", totals.accounts.dropped},
          {"received", totals.accounts.received}};
}

}  // namespace

std::string name_or_number(std::string_view name, std::uint64_t number) {
  return name.empty() ? fmt::format("{:#x}", number) : std::string(name);
}

std::string header_line(const Session& session, const Part& part) {
  Json out = {{"type", "trace"},
              {"format", "cudabpf-trace"},
              {"format_version", FORMAT_VERSION},
              {"version", session.version}};
  if (part.number) out["part"] = part.number;
  if (part.number || part.since) out["since"] = part.since;
  out["host"] = session.host;
  out["kernel"] = session.kernel;
  out["arch"] = session.arch;
  out["driver"] = session.driver.empty() ? Json(nullptr) : Json(session.driver);
  out["gpus"] = Json::array();
  for (const Gpu& gpu : session.gpus)
    out["gpus"].push_back(
        {{"index", gpu.index}, {"name", gpu.name}, {"uuid", gpu.uuid}, {"bus_id", gpu.bus_id}});
  const Sampling& sampling = session.sampling;
  if (!sampling.gpus.empty() || !sampling.why_not.empty())
    out["sampling"] = sampling_fields(sampling);
  out["mode"] = session.mode;
  set_unless_empty(out, "source", session.source);
  if (!session.unseen.empty()) out["unseen"] = session.unseen;
  out["command"] = session.command;
  out["pids"] = session.pids;
  out["profile"] = session.profile;
  if (!session.only.empty()) out["only"] = session.only;
  if (!session.exclude.empty()) out["exclude"] = session.exclude;
  out["left_out"] = session.left_out;
  out["returns"] = session.returns;
  out["follow"] = session.follow;
  out["driver_traced"] = session.driver_traced;
  set_unless_empty(out, "driver_way", session.driver_way);
  set_unless_empty(out, "gpu_works", session.gpu_works);
  if (session.redacted) out["redacted"] = true;
  out["ring_size"] = session.ring_size;
  out["clocks"] = {{"realtime_ns", session.realtime_ns},
                   {"monotonic_ns", session.monotonic_ns},
                   {"boottime_ns", session.boottime_ns}};
  out["libraries"] = Json::array();
  for (const Library& library : session.libraries) {
    Json fields = library_fields(library);
    if (library.ts) fields["ts"] = library.ts;
    out["libraries"].push_back(std::move(fields));
  }
  out["features"] = Json::array();
  for (const Feature& feature : session.features) {
    Json fields = {{"name", feature.name}, {"state", name_of(feature.state)}};
    set_unless_empty(fields, "why", feature.why);
    if (feature.disabled) fields["disabled"] = true;
    out["features"].push_back(std::move(fields));
  }
  return line(std::move(out));
}

std::string driver_line(const DriverCall& call) {
  bool is_ioctl = call.op == DriverCall::Op::ioctl;
  bool is_fault = call.op == DriverCall::Op::fault;
  std::string name(to_string(call.op));
  Fields out;
  out.text("type", "kernel");
  out.text("op", is_interrupt(call.op) ? "interrupt" : name);
  out.text("name", is_ioctl ? name_or_number(call.details.name, call.details.number) : name);
  out.number("ts", call.ts);
  if (call.has_return) out.microseconds("duration_us", call.duration);
  if (is_interrupt(call.op)) {
    out.number("cpu", call.cpu);
    return std::move(out).line();
  }
  out.number("pid", call.pid);
  out.number("tid", call.tid);
  if (call.has_return) {
    out.signed_number("ret", call.result);
    std::string_view error = is_fault ? fault_error(call.result) : system_error(call);
    if (!error.empty()) out.text("error", error);
  }
  if (call.call) out.number("call", call.call);
  out.text("device", call.device);
  if (is_ioctl) set_ioctl(out, call.details);
  if (is_fault) {
    out.hex("address", call.address);
    out.text("access", call.to_write ? "write" : "read");
  }
  if (call.status)
    out.text("status", name_or_number(driver_status_name(*call.status), *call.status));
  if (call.length) out.number("size", call.length);
  out.flag("unfinished", call.unfinished);
  out.flag("return_lost", call.return_lost);
  out.flag("read_fault", call.read_fault);
  return std::move(out).line();
}

std::string graph_line(const GraphContent& content, std::uint64_t ts) {
  Json out = {{"type", "graph"},           {"op", "content"},         {"ts", ts},
              {"pid", content.pid},        {"graph", content.number}, {"nodes", content.nodes},
              {"kernels", content.kernels}};
  out["content"] = Json::array();
  std::uint64_t more = content.more;
  std::size_t text = 0;  // no reader takes a line of any length
  for (const auto& [work, count] : content.works) {
    if (work.kernel) text += work.kernel->full.size();
    if (text < MOST_TEXT_OF_GRAPH)
      out["content"].push_back(work_fields(work, count));
    else if (!work.conditional)
      more += count;
  }
  if (more) out["more"] = more;
  return whole_line(out);  // kernels have the same names as in calls
}

std::string error_line(const GpuError& error) {
  Json out = {{"type", "error"},
              {"op", "xid"},
              {"name", fmt::format("Xid {}", error.xid)},
              {"ts", error.ts},
              {"xid", error.xid}};
  set_unless_empty(out, "meaning", std::string(error.meaning));
  out["device"] = error.device;
  if (error.pid) out["pid"] = *error.pid;
  set_unless_empty(out, "comm", error.comm);
  out["message"] = error.message;
  if (error.message_cut) out["text_cut"] = true;
  return line(std::move(out));
}

std::string process_line(const Process& process) {
  Json out = {{"type", "process"},
              {"op", name_of(process.op)},
              {"ts", process.ts},
              {"pid", process.pid},
              {"ppid", process.ppid}};
  if (process.ns_pid) out["ns_pid"] = process.ns_pid;
  if (process.uid) out["uid"] = *process.uid;
  out["comm"] = process.comm;
  set_unless_empty(out, "cmdline", process.cmdline);
  set_unless_empty(out, "exe", process.exe);
  set_unless_empty(out, "cgroup", process.cgroup);
  if (!process.container_runtime.empty()) {
    out["container"] = {{"runtime", process.container_runtime}, {"id", process.container_id}};
    set_unless_empty(out["container"], "pod", process.pod);
  }
  set_unless_empty(out, "unit", process.unit);
  if (process.exit_code) out["exit_code"] = *process.exit_code;
  if (process.signal) out["signal"] = *process.signal;
  return line(std::move(out));
}

std::string library_line(const Library& library) {
  Json out = {{"type", "library"}, {"ts", library.ts}};
  out.update(library_fields(library));
  return line(std::move(out));
}

std::string lost_line(const LossEvent& loss) {
  const LossInfo& what = info(loss.reason);
  Json out = {{"type", "lost"},
              {"ts", loss.until},
              {"reason", what.name},
              {"severity", what.degraded ? "degraded" : "lost"},
              {"count", loss.count ? Json(*loss.count) : Json(nullptr)},
              {"since", loss.since},
              {"until", loss.until}};
  set_unless_empty(out, "detail", loss.detail);
  return line(std::move(out));
}

std::string end_line(const FileEnd& end) {
  Json out = {{"type", "end"}, {"ts", end.part.since + end.totals.duration_ns}};
  if (end.part.number) {
    out["part"] = end.part.number;
    out["last"] = end.last;
  }
  out["lines"] = end.lines;
  set_totals(out, end.totals);
  const Totals& whole = end.whole ? *end.whole : end.totals;
  if (end.last) {
    if (end.whole) {
      Json& totals = out["whole"] = Json::object();
      set_totals(totals, whole);
    }
    out["accounts"] = accounts_of(whole);
    const KernelNameCounts& names = whole.kernel_names;
    if (names.confirmed || names.contradicted)
      out["kernel_names"] = {{"confirmed", names.confirmed}, {"contradicted", names.contradicted}};
    if (whole.gpu_works) out["gpu_works"] = work_counts_fields(*whole.gpu_works);
    if (whole.command_status) out["command_status"] = *whole.command_status;
    out["reason"] = whole.reason;
  } else {
    out["reason"] = whole.reason.empty() ? "rotated" : whole.reason;
  }
  return line(std::move(out));
}

}  // namespace cudabpf
