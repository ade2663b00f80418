#include "analyze/report/report_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "analyze/report/packed.hpp"

namespace cudabpf::analyze {

namespace {

using Lane = std::vector<const ReportEvent*>;

// The numbers that an event has, in the order of web/src/data/timeline.ts.
struct Columns {
  PackedNumbers begin, duration, kind, details, stream, id, count, busy;
  PackedNumbers iteration_begin, iteration_time, iteration_launches, iteration_exposed;  // one each

  void add(const Lane& lane) {
    std::uint64_t before = 0, id_before = 0;
    for (const ReportEvent* event : lane) {
      begin.add(event->begin - before);
      duration.add(event->time());
      kind.add(event->kind);
      details.add(event->details);
      stream.add(event->stream);
      id.add_signed(static_cast<std::int64_t>(event->id - id_before));
      count.add(event->count - 1);
      busy.add_signed(static_cast<std::int64_t>(event->busy - event->time()));
      before = event->begin;
      id_before = event->id;
    }
  }
  std::array<std::pair<const char*, const PackedNumbers*>, 12> all() const {
    return {{{"begin", &begin},
             {"duration", &duration},
             {"kind", &kind},
             {"details", &details},
             {"stream", &stream},
             {"id", &id},
             {"count", &count},
             {"busy", &busy},
             {"iteration_begin", &iteration_begin},
             {"iteration_time", &iteration_time},
             {"iteration_launches", &iteration_launches},
             {"iteration_exposed", &iteration_exposed}}};
  }
};

// A thread's calls by how deep they are nested. Where calls were merged, that is about right.
std::vector<Lane> nested_lanes(const ReportTimeline::OfThread& thread) {
  constexpr std::size_t DEEPEST = 8;
  std::vector<Lane> lanes(1);
  std::vector<std::uint64_t> ends;  // of the calls that are open, the innermost last
  const ReportRow& inner = thread.rows[NESTED];
  std::size_t next = 0;
  auto add_inner_before = [&](std::uint64_t limit) {
    for (; next < inner.size() && inner[next].begin < limit; next++) {
      while (ends.size() > 1 && ends.back() < inner[next].end) ends.pop_back();
      std::size_t depth = std::clamp<std::size_t>(ends.size(), 1, DEEPEST);
      if (lanes.size() <= depth) lanes.resize(depth + 1);
      lanes[depth].push_back(&inner[next]);
      if (ends.size() < DEEPEST) ends.push_back(inner[next].end);
    }
  };
  for (const ReportEvent& event : thread.rows[CALLS]) {
    add_inner_before(event.begin);
    ends.assign(1, event.end);
    lanes.front().push_back(&event);
  }
  add_inner_before(std::numeric_limits<std::uint64_t>::max());
  return lanes;
}

Lane lane_of(const ReportRow& row) {
  Lane events;
  events.reserve(row.size());
  for (const ReportEvent& event : row) events.push_back(&event);
  return events;
}

// Each text once.
class Texts {
 public:
  explicit Texts(const Names& names) : names_(names) { texts_.emplace_back(""); }

  std::size_t of(Name name) {
    if (!name) return 0;
    auto [at, is_new] = numbers_.try_emplace(name.id, texts_.size());
    if (!is_new) return at->second;
    constexpr std::size_t LONGEST = 4096, MAX_BYTES = std::size_t{16} << 20;
    std::string text = short_text(names_.text(name), LONGEST);
    if (bytes_ + text.size() > MAX_BYTES) text = "(not kept)";
    bytes_ += text.size();
    texts_.push_back(std::move(text));
    return at->second;
  }
  const Json& all() const { return texts_; }

 private:
  const Names& names_;
  Json texts_ = Json::array();
  std::unordered_map<std::uint32_t, std::size_t> numbers_;
  std::size_t bytes_ = 0;
};

void add_kinds(Json& meta, const ReportTimeline& timeline, Texts& texts) {
  constexpr std::size_t LONGEST = 256;
  Json kinds = Json::array(), names = Json::object();
  for (const LaneEvent& kind : timeline.kinds().all()) {
    std::size_t what = texts.of(kind.what);
    kinds.push_back({texts.of(kind.name), what, texts.of(kind.error), texts.of(kind.ending),
                     static_cast<unsigned>(kind.category), kind.flags()});
    if (kind.is_kernel && what && !names.contains(std::to_string(what)))
      names[std::to_string(what)] = short_text(timeline.short_name(kind.what), LONGEST);
  }
  if (kinds.empty()) kinds.push_back({0, 0, 0, 0, static_cast<unsigned>(Category::other), 0});
  meta["kinds"] = std::move(kinds);
  meta["short_names"] = std::move(names);
}

Json owners_json(const ReportTimeline& timeline) {
  Json processes = Json::array(), threads = Json::array(), queues = Json::array(),
       streams = Json::array();
  constexpr std::size_t LONGEST = 256;
  for (const auto& process : timeline.processes()) {
    processes.push_back(
        {{"pid", process.pid}, {"comm", short_text(timeline.names().text(process.comm), LONGEST)}});
    if (process.host)
      processes.back()["host"] = short_text(timeline.names().text(process.host), LONGEST);
    if (process.windows.empty()) continue;
    Json& windows = processes.back()["gpu_windows"] = Json::array();
    for (const TimeSpan& window : process.windows) windows.push_back({window.begin, window.end});
  }
  for (const auto& thread : timeline.threads())
    threads.push_back({{"process", thread.process}, {"tid", thread.tid}});
  for (const auto& queue : timeline.queues())
    queues.push_back({{"process", queue.process},
                      {"gpu", gpu_name(queue.key)},
                      {"stream", stream_number(queue.key)},
                      {"name", stream_name(queue.key, queue.handle)}});
  for (const auto& stream : timeline.streams()) {
    streams.push_back({{"process", stream.process}, {"handle", hexadecimal(stream.handle)}});
    if (stream.tid) streams.back()["tid"] = stream.tid;
  }
  return {{"processes", processes}, {"threads", threads}, {"queues", queues}, {"streams", streams}};
}

Json curves_json(const ReportTimeline& timeline) {
  const auto& activity = timeline.activity();
  Json launches = Json::array(), to_device = Json::array(), to_host = Json::array(),
       other = Json::array();
  for (std::size_t i = 0; i < activity.size(); i++) {
    launches.push_back(activity[i].launches);
    to_device.push_back(activity[i].to_device);
    to_host.push_back(activity[i].to_host);
    other.push_back(activity[i].other_copies);
  }
  Json gpus = Json::array();
  for (const auto& [device, sampled] : timeline.gpus()) {
    Json active = Json::array(), watts = Json::array();
    auto mean = [](double sum, std::uint32_t count) {
      return count ? Json(sum / count) : Json(nullptr);
    };
    for (std::size_t i = 0; i < sampled.size(); i++) {
      active.push_back(mean(sampled[i].active, sampled[i].actives));
      watts.push_back(mean(sampled[i].watts, sampled[i].powers));
    }
    gpus.push_back({{"device", device},
                    {"step_ns", sampled.width()},
                    {"active", std::move(active)},
                    {"watts", std::move(watts)}});
  }
  return {{"step_ns", activity.width()}, {"launches", launches}, {"to_device", to_device},
          {"to_host", to_host},          {"other", other},       {"gpus", gpus}};
}

Json lanes_json(const ReportTimeline& timeline, Columns& columns) {
  Json lanes = Json::array();
  auto add = [&](const Lane& lane, const char* kind, const char* owner, std::size_t index,
                 std::size_t depth) {
    if (lane.empty()) return;
    columns.add(lane);
    lanes.push_back({{"kind", kind}, {owner, index}, {"depth", depth}, {"events", lane.size()}});
  };
  for (std::size_t i = 0; i < timeline.threads().size(); i++) {
    const auto& thread = timeline.threads()[i];
    for (std::size_t depth = 0; depth < thread.ranges.size(); depth++)
      add(lane_of(thread.ranges[depth]), "ranges", "thread", i, depth);
    std::vector<Lane> nested = nested_lanes(thread);
    for (std::size_t depth = 0; depth < nested.size(); depth++)
      add(nested[depth], "calls", "thread", i, depth);
    add(lane_of(thread.rows[DRIVER]), "driver", "thread", i, 0);
  }
  for (std::size_t i = 0; i < timeline.queues().size(); i++)
    add(lane_of(timeline.queues()[i].row), "gpu", "queue", i, 0);
  return lanes;
}

// Those that begin in the part that is shown.
Json iterations_json(const ReportTimeline& timeline, const Execution& execution, Columns& columns) {
  constexpr std::size_t MAX = 1 << 17;
  const auto& each = execution.iterations().each;
  if (each.empty() || !execution.thread()) return nullptr;
  std::size_t first = 0, count = 0;
  std::uint64_t left_out = 0, before = 0;
  const auto* gpu = execution.gpus().of_process(execution.thread()->process);
  for (std::size_t i = 0; i < each.size(); i++) {
    const Iteration& one = each[i];
    if (one.begin < timeline.from()) continue;
    if (one.begin >= timeline.to() || one.begin < before) break;  // times may be anything
    if (count == MAX) {
      left_out++;
      continue;
    }
    if (!count++) first = i;
    columns.iteration_begin.add(one.begin - before);
    columns.iteration_time.add(std::clamp(one.end, one.begin, ReportTimeline::LATEST) - one.begin);
    columns.iteration_launches.add(one.launches);
    columns.iteration_exposed.add(gpu ? gpu->curve.between(one.begin, one.end).exposed : 0);
    before = one.begin;
  }
  const ThreadWork& thread = *execution.thread();
  return {{"pid", thread.pid},  {"tid", thread.tid},
          {"first", first + 1}, {"warm_up", execution.iterations().warm_up},
          {"count", count},     {"left_out", left_out}};
}

}  // namespace

std::string timeline_data(const ReportTimeline& timeline, const Execution* execution) {
  Json meta = {
      {"from", timeline.from()},
      {"to", timeline.to()},
      {"resolution_ns", timeline.resolution() ? std::uint64_t{1} << timeline.resolution() : 0}};
  meta.update(owners_json(timeline));
  Columns columns;
  meta["lanes"] = lanes_json(timeline, columns);
  meta["iterations"] = execution ? iterations_json(timeline, *execution, columns) : nullptr;
  Texts texts(timeline.names());
  add_kinds(meta, timeline, texts);
  meta["texts"] = texts.all();
  Json categories = Json::array();
  for (unsigned i = 0; i <= static_cast<unsigned>(Category::range); i++)
    categories.push_back(look_of(static_cast<Category>(i)).name);
  meta["categories"] = categories;
  meta["details"] = timeline.details().all();
  meta["details_left_out"] = timeline.details().is_full();
  meta["curves"] = curves_json(timeline);
  const auto& left_out = timeline.left_out();
  meta["left_out"] = {{"of_threads", left_out.of_threads},
                      {"of_queues", left_out.of_queues},
                      {"too_late", left_out.too_late}};
  Json sizes = Json::array();
  for (auto [name, column] : columns.all())
    sizes.push_back({{"name", name}, {"bytes", column->bytes().size()}});
  meta["columns"] = sizes;
  std::string text = meta.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string data;
  for (unsigned shift = 0; shift < 32; shift += 8)
    data += static_cast<char>(text.size() >> shift & 0xff);
  data += text;
  for (auto [name, column] : columns.all()) data += column->bytes();
  return data;
}

}  // namespace cudabpf::analyze
