#include "trace/write/event_lines.hpp"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "trace/write/line_text.hpp"
#include "util/text/json_writer.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_TEXT_OF_GRAPH = 1 << 20;

LineFields dimensions(const Dim3& of) { return {of.x, of.y, of.z}; }

// Some nodes of a graph.
LineFields work_fields(const GraphOperation& work, std::uint64_t count) {
  LineFields out = {{"op", to_string(work.what)}};
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

void set_ioctl(json::Writer& out, const IoctlDetails& details) {
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

}  // namespace

std::string name_or_number(std::string_view name, std::uint64_t number) {
  return name.empty() ? fmt::format("{:#x}", number) : std::string(name);
}

std::string driver_line(const DriverCall& call) {
  bool is_ioctl = call.op == DriverCall::Op::ioctl;
  bool is_fault = call.op == DriverCall::Op::fault;
  std::string name(to_string(call.op));
  json::Writer out;
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
  out.text("device_file", call.device);
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
  LineFields out = {
      {"type", "graph"},           {"op", "content"},         {"ts", ts},
      {"pid", content.pid},        {"graph", content.number}, {"nodes", content.nodes},
      {"kernels", content.kernels}};
  out["content"] = LineFields::array();
  std::uint64_t more = content.more;
  std::size_t text = 0;  // no reader takes a line of any length
  for (const auto& [work, count] : content.operations) {
    if (work.kernel) text += work.kernel->full.size();
    if (text < MAX_TEXT_OF_GRAPH)
      out["content"].push_back(work_fields(work, count));
    else if (!work.conditional)
      more += count;
  }
  if (more) out["more"] = more;
  if (!content.collectives.empty()) {
    out["collectives"] = LineFields::array();
    for (const CapturedCollective& one : content.collectives)
      out["collectives"].push_back(one.call);
  }
  if (!content.products.empty()) {
    out["products"] = LineFields::array();
    for (const CapturedProduct& one : content.products) out["products"].push_back(one.call);
  }
  return uncut_line_of(out);  // kernels have the same names as in calls
}

std::string communicator_line(const Communicator& communicator, std::uint64_t ts) {
  LineFields out = {{"type", "collective"},
                    {"op", "comm"},
                    {"ts", ts},
                    {"pid", communicator.pid},
                    {"communicator", communicator.number}};
  auto set_known = [&](const char* key, const auto& value) {
    if (value) out[key] = *value;
  };
  auto set_number = [&](const char* key, std::uint64_t number) {
    if (number) out[key] = number;
  };
  if (communicator.identity) out["identity"] = fmt::format("{:#018x}", *communicator.identity);
  set_known("rank", communicator.rank);
  set_known("ranks", communicator.ranks);
  set_known("device", communicator.device);
  set_number("made_by", communicator.made_by);
  set_number("from", communicator.from);
  set_number("ordinal", communicator.ordinal);
  set_known("color", communicator.color);
  set_known("key", communicator.key);
  if (communicator.late) out["late"] = true;
  if (communicator.lost) out["calls_lost"] = true;
  return line_of(std::move(out));
}

std::string error_line(const GpuError& error) {
  LineFields out = {{"type", "error"},
                    {"op", "xid"},
                    {"name", fmt::format("Xid {}", error.xid)},
                    {"ts", error.ts},
                    {"xid", error.xid}};
  set_unless_empty(out, "meaning", std::string(error.meaning));
  out["bus_id"] = error.device;
  if (error.pid) out["pid"] = *error.pid;
  set_unless_empty(out, "comm", error.comm);
  out["message"] = error.message;
  if (error.message_cut) out["text_cut"] = true;
  return line_of(std::move(out));
}

std::string process_line(const Process& process) {
  LineFields out = {{"type", "process"},
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
  if (!process.rank.empty()) out["rank"] = rank_fields(process.rank);
  if (process.exit_code) out["exit_code"] = *process.exit_code;
  if (process.signal) out["signal"] = *process.signal;
  return line_of(std::move(out));
}

std::string library_line(const Library& library) {
  LineFields out = {{"type", "library"}, {"ts", library.ts}};
  out.update(library_fields(library));
  return line_of(std::move(out));
}

std::string lost_line(const LossEvent& loss) {
  const LossInfo& what = info(loss.reason);
  LineFields out = {{"type", "lost"},
                    {"ts", loss.until},
                    {"reason", what.name},
                    {"severity", what.degraded ? "degraded" : "lost"},
                    {"count", loss.count ? LineFields(*loss.count) : LineFields(nullptr)},
                    {"since", loss.since},
                    {"until", loss.until}};
  set_unless_empty(out, "detail", loss.detail);
  return line_of(std::move(out));
}

}  // namespace cudabpf
