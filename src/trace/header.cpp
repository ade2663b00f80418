#include "trace/header.hpp"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "trace/fields_in.hpp"
#include "trace/write/line_text.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf {

namespace {

constexpr std::uint64_t NS_IN_MILLISECOND = 1'000'000;
constexpr std::string_view FEATURE_STATES[] = {"no", "yes", "unknown"};

LineFields gpu_fields(const SampledGpu& gpu) {
  LineFields out = {{"gpu", gpu.device},
                    {"name", gpu.name},
                    {"uuid", gpu.uuid},
                    {"bus_id", gpu.bus_id},
                    {"activity", gpu.activity}};
  if (!gpu.why.empty()) out["why"] = gpu.why;
  if (!gpu.power.empty()) out["power"] = gpu.power;
  if (!gpu.lacks.empty()) out["lacks"] = gpu.lacks;
  return out;
}

LineFields nvml_fields(const Sampling& sampling) {
  LineFields out = {{"source", "nvml"},
                    {"period_ms", sampling.period_ns / NS_IN_MILLISECOND},
                    {"window_ms", sampling.window_ns / NS_IN_MILLISECOND},
                    {"slow_ms", sampling.slow_ns / NS_IN_MILLISECOND}};
  if (sampling.own_pids) out["own_pids"] = true;
  if (!sampling.why_not.empty()) out["why"] = sampling.why_not;
  out["gpus"] = LineFields::array();
  for (const SampledGpu& gpu : sampling.gpus) out["gpus"].push_back(gpu_fields(gpu));
  return out;
}

LineFields sampling_fields(const Sampling& sampling) {
  LineFields out = sampling.gpus.empty() ? LineFields{{"source", "none"}, {"why", sampling.why_not}}
                                         : nvml_fields(sampling);
  if (sampling.switches) out["switches"] = "fecs";
  if (!sampling.switches_why_not.empty()) out["switches_why"] = sampling.switches_why_not;
  return out;
}

LineFields feature_fields(const Feature& feature) {
  LineFields fields = {{"name", feature.name},
                       {"state", FEATURE_STATES[static_cast<int>(feature.state)]}};
  set_unless_empty(fields, "why", feature.why);
  if (feature.disabled) fields["disabled"] = true;
  return fields;
}

using ReadJson = nlohmann::json;

// More than a machine has, and little memory: as text, a list of empty objects is short.
constexpr std::size_t MAX_THINGS = 4096, MAX_TEXTS = (64 << 10) + 1;

std::optional<Gpu> gpu_in(const ReadJson& json) {
  return Gpu{number_in<int>(json, "index").value_or(-1), text_in(json, "name"),
             text_in(json, "uuid"), text_in(json, "bus_id")};
}

std::optional<SampledGpu> sampled_gpu_in(const ReadJson& json) {
  auto device = number_in<std::uint16_t>(json, "gpu");
  if (!device) return std::nullopt;
  SampledGpu gpu;
  gpu.device = *device;
  gpu.name = text_in(json, "name");
  gpu.uuid = text_in(json, "uuid");
  gpu.bus_id = text_in(json, "bus_id");
  gpu.activity = text_in(json, "activity");
  gpu.why = text_in(json, "why");
  gpu.power = text_in(json, "power");
  gpu.lacks = texts_in(json, "lacks", MAX_THINGS);
  return gpu;
}

std::optional<Sampling> sampling_in(const ReadJson& header) {
  const ReadJson* json = member_of(header, "sampling");
  if (!json || !json->is_object()) return std::nullopt;
  Sampling sampling;
  sampling.period_ns = time_in(*json, "period_ms", NS_IN_MILLISECOND);
  sampling.window_ns = time_in(*json, "window_ms", NS_IN_MILLISECOND);
  sampling.slow_ns = time_in(*json, "slow_ms", NS_IN_MILLISECOND);
  sampling.gpus = things_in<SampledGpu>(*json, "gpus", MAX_THINGS, sampled_gpu_in);
  sampling.own_pids = flag_in(*json, "own_pids").value_or(false);
  sampling.why_not = text_in(*json, "why");
  sampling.switches = text_in(*json, "switches") == "fecs";
  sampling.switches_why_not = text_in(*json, "switches_why");
  return sampling;
}

std::optional<Library> library_in(const ReadJson& json) {
  auto count = [&](const char* key) { return number_in<std::uint32_t>(json, key).value_or(0); };
  Library library;
  if (const Api* known = api_of_key(text_in(json, "library"))) library.api = known->key;
  library.path = text_in(json, "path");
  library.build_id = text_in(json, "build_id");
  library.device = number_in<std::uint64_t>(json, "fs_device").value_or(0);
  library.inode = number_in<std::uint64_t>(json, "inode").value_or(0);
  library.functions = count("functions");
  library.skipped = count("skipped");
  library.unknown = count("unknown");
  library.left_out = count("left_out");
  library.unpatched = texts_in(json, "unpatched", MAX_THINGS);
  library.attach_ns = time_in(json, "attach_us", 1000);
  library.error = text_in(json, "error");
  library.ts = time_in(json, "ts");
  return library;
}

std::optional<Feature> feature_in(const ReadJson& json) {
  Feature feature;
  feature.name = text_in(json, "name");
  std::string state = text_in(json, "state");
  for (std::size_t i = 0; i < std::size(FEATURE_STATES); i++)
    if (state == FEATURE_STATES[i]) feature.state = static_cast<Feature::State>(i);
  feature.why = text_in(json, "why");
  feature.disabled = flag_in(json, "disabled").value_or(false);
  return feature;
}

std::vector<std::uint32_t> pids_in(const ReadJson& header) {
  std::vector<std::uint32_t> pids;
  if (const ReadJson* list = list_in(header, "pids"))
    for (const ReadJson& pid : *list)
      if (pid.is_number_unsigned() && std::in_range<std::uint32_t>(pid.get<std::uint64_t>()))
        pids.push_back(pid.get<std::uint32_t>());
  return pids;
}

ReadJson object_in(std::string_view line) {
  return nests_too_deep(line) ? ReadJson() : parsed(line);
}

LineFields gpu_window_fields(const Session& session) {
  return {{"window_ns", session.gpu_window_ns}, {"period_ns", session.gpu_period_ns}};
}

void add_what_else_is_recorded(LineFields& out, const Session& session) {
  if (session.ranges) out["ranges"] = true;
  if (session.python) out["python"] = true;
  if (session.python_slower_ns) out["python_slower_ns"] = session.python_slower_ns;
  if (session.shapes) out["shapes"] = true;
  if (session.blocks) out["blocks"] = true;
}

}  // namespace

std::string header_line(const Session& session, const FilePart& part,
                        const std::vector<MergedTrace>& merged) {
  LineFields out = {{"type", "trace"},
                    {"format", "cudabpf-trace"},
                    {"format_version", FORMAT_VERSION},
                    {"version", session.version}};
  if (part.number) out["part"] = part.number;
  if (part.number || part.since) out["since"] = part.since;
  if (!merged.empty()) out["merged"] = merged_fields(merged);
  out["host"] = session.host;
  out["linux"] = session.linux_release;
  out["boot_id"] = session.boot_id;
  if (!session.rank.empty()) out["rank"] = rank_fields(session.rank);
  out["arch"] = session.arch;
  out["driver"] = session.driver.empty() ? LineFields(nullptr) : LineFields(session.driver);
  out["gpus"] = LineFields::array();
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
  if (!session.only_libraries.empty()) out["only_libraries"] = session.only_libraries;
  out["left_out"] = session.left_out;
  out["returns"] = session.returns;
  out["follow"] = session.follow;
  out["driver_traced"] = session.driver_traced;
  set_unless_empty(out, "driver_way", session.driver_way);
  set_unless_empty(out, "gpu_timing", session.gpu_timing);
  if (session.gpu_period_ns) out["gpu_window"] = gpu_window_fields(session);
  add_what_else_is_recorded(out, session);
  if (session.redacted) out["redacted"] = true;
  out["ring_size"] = session.ring_size;
  out["clocks"] = {{"realtime_ns", session.realtime_ns},
                   {"monotonic_ns", session.monotonic_ns},
                   {"boottime_ns", session.boottime_ns},
                   {"namespace_monotonic_ns", session.namespace_offsets.monotonic_ns},
                   {"namespace_boottime_ns", session.namespace_offsets.boottime_ns}};
  if (session.clock_error) out["clock_error"] = clock_error_fields(*session.clock_error);
  out["libraries"] = LineFields::array();
  for (const Library& library : session.libraries) {
    LineFields fields = library_fields(library);
    if (library.ts) fields["ts"] = library.ts;
    out["libraries"].push_back(std::move(fields));
  }
  out["features"] = LineFields::array();
  for (const Feature& feature : session.features)
    out["features"].push_back(feature_fields(feature));
  return line_of(std::move(out));
}

std::optional<TraceClocks> clocks_in(const nlohmann::json& object) {
  const nlohmann::json* json = member_of(object, "clocks");
  if (!json || !json->is_object()) return std::nullopt;
  auto offset = [&](const char* key) { return number_in<std::int64_t>(*json, key).value_or(0); };
  return TraceClocks{time_in(*json, "realtime_ns"),
                     time_in(*json, "monotonic_ns"),
                     time_in(*json, "boottime_ns"),
                     {offset("namespace_monotonic_ns"), offset("namespace_boottime_ns")}};
}

std::optional<ClockError> clock_error_in(const nlohmann::json& json) {
  const nlohmann::json* error = member_of(json, "clock_error");
  if (!error || !error->is_object()) return std::nullopt;
  auto number = [&](const char* key) { return number_in<std::uint64_t>(*error, key).value_or(0); };
  return ClockError{number_in<std::int64_t>(*error, "offset_ns").value_or(0),
                    number("max_error_us"), number("estimated_error_us"),
                    number_in<std::uint32_t>(*error, "status").value_or(0)};
}

std::optional<TraceHeader> header_in(std::string_view line) {
  ReadJson json = object_in(line);
  if (!json.is_object()) return std::nullopt;
  TraceHeader header;
  auto text = [&](const char* key) { return text_in(json, key); };
  auto texts = [&](const char* key) { return texts_in(json, key, MAX_TEXTS); };
  header.format = text("format");
  header.format_version = text("format_version");
  header.version = text("version");
  header.part = {number_in<unsigned>(json, "part").value_or(0), time_in(json, "since")};
  header.merged = merged_in(json);
  header.host = text("host");
  header.linux_release = text("linux");
  header.boot_id = text("boot_id");
  header.rank = rank_in(json);
  header.arch = text("arch");
  header.driver = text("driver");
  header.gpus = things_in<Gpu>(json, "gpus", MAX_THINGS, gpu_in);
  header.sampling = sampling_in(json);
  header.mode = text("mode");
  header.source = text("source");
  header.unseen = texts("unseen");
  if (list_in(json, "command")) header.command = texts("command");
  header.pids = pids_in(json);
  header.profile = text("profile");
  header.only = texts("only");
  header.exclude = texts("exclude");
  header.only_libraries = texts("only_libraries");
  header.left_out = texts("left_out");
  header.returns = flag_in(json, "returns");
  header.follow = flag_in(json, "follow");
  header.driver_traced = flag_in(json, "driver_traced");
  header.driver_way = text("driver_way");
  header.gpu_timing = text("gpu_timing");
  if (const ReadJson* window = member_of(json, "gpu_window"); window && window->is_object()) {
    header.gpu_window_ns = number_in<std::uint64_t>(*window, "window_ns").value_or(0);
    header.gpu_period_ns = number_in<std::uint64_t>(*window, "period_ns").value_or(0);
  }
  header.ranges = flag_in(json, "ranges").value_or(false);
  header.python = flag_in(json, "python").value_or(false);
  header.python_slower_ns = number_in<std::uint64_t>(json, "python_slower_ns").value_or(0);
  header.shapes = flag_in(json, "shapes").value_or(false);
  header.blocks = flag_in(json, "blocks").value_or(false);
  header.redacted = flag_in(json, "redacted").value_or(false);
  header.ring_size = number_in<std::uint64_t>(json, "ring_size").value_or(0);
  header.clocks = clocks_in(json);
  header.clock_error = clock_error_in(json);
  header.libraries = things_in<Library>(json, "libraries", MAX_THINGS, library_in);
  header.features = things_in<Feature>(json, "features", MAX_THINGS, feature_in);
  return header;
}

std::string_view why_no_header(std::string_view line) {
  ReadJson json = object_in(line);
  if (!json.is_object()) return "its first line is not a header";
  bool ours = json.contains("type") && json.contains("ts");
  return ours ? "its first line, the header, is missing" : "it looks like other JSON";
}

}  // namespace cudabpf
