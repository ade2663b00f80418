#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/timeline/timeline_view.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t JSON_COLUMNS = 256;

template <typename Value>
Json row_json(const std::vector<Timeline::Busy>& columns, Value&& value) {
  Json row = Json::array();
  for (const auto& column : columns) row.push_back(value(column));
  return row;
}

Json busy_json(const std::vector<Timeline::Busy>& columns) {
  Json busy = Json::object();
  for (std::size_t i = 0; i < CATEGORIES; i++)
    if (std::any_of(columns.begin(), columns.end(), [&](const auto& c) { return c.time[i] > 0; }))
      busy[std::string(look_of(static_cast<Category>(i)).name)] =
          row_json(columns, [&](const auto& column) { return microseconds(column.time[i]); });
  return busy;
}

// By depth; those within a column are one, without a name.
Json ranges_json(const Timeline& timeline, const Timeline::Thread& thread) {
  Json rows = Json::array();
  std::uint64_t column = (timeline.to() - timeline.from()) / JSON_COLUMNS;
  for (const BarRow& row : thread.ranges) {
    Json spans = Json::array();
    each_bar(row, timeline.from(), timeline.to(), column, [&](const Bar& bar) {
      spans.push_back({{"from_us", microseconds(bar.begin)},
                       {"to_us", microseconds(bar.end)},
                       {"count", bar.total().count}});
      if (bar.is_one()) spans.back()["name"] = timeline.names().text(bar.parts()[0].name);
    });
    rows.push_back(std::move(spans));
  }
  return rows;
}

Json thread_json(const Timeline& timeline, const Timeline::Thread& thread, const TimeScale& scale) {
  auto columns = busy_columns(thread, scale);
  Json json = {{"tid", thread.tid},
               {"calls", thread.all.calls},
               {"launches", thread.all.launches},
               {"busy_us", microseconds(thread.all.total())},
               {"columns", {{"busy_us", busy_json(columns)}}}};
  if (thread.gap.time)
    json["longest_gap"] = {{"from_us", microseconds(thread.gap.begin)},
                           {"time_us", microseconds(thread.gap.time)},
                           {"after", timeline.names().text(thread.gap.after)},
                           {"before", timeline.names().text(thread.gap.before)}};
  if (!thread.ranges.empty()) json["ranges"] = ranges_json(timeline, thread);
  if (thread.all.launches)
    json["columns"]["launches"] = row_json(columns, [](const auto& c) { return c.launches; });
  if (thread.all.ioctls)
    json["columns"]["ioctls"] = row_json(columns, [](const auto& c) { return c.ioctls; });
  return json;
}

// What GPUs did, queue by queue.
Json queues_json(const Timeline& timeline, const Timeline::Process& process,
                 const TimeScale& scale) {
  Json queues = Json::array();
  for (std::size_t index : process.queues) {
    const Timeline::Queue& queue = timeline.gpu_queue(index);
    Json json = {{"operations", queue.operations},
                 {"busy_us", microseconds(queue.time)},
                 {"columns", {{"busy_us", busy_json(busy_columns(queue, scale))}}}};
    if (!queue.handle.empty()) json["stream"] = queue.handle;
    if (queue.key.device >= 0) json["device"] = queue.key.device;
    if (queue.key.queue >= 0) json["queue"] = queue.key.queue;
    queues.push_back(json);
  }
  return queues;
}

// How many iterations begin in each column.
Json iterations_json(const Timeline& timeline, const TimeScale& scale) {
  std::vector<std::uint64_t> begun(JSON_COLUMNS);
  for (const Iteration& one : timeline.execution().iterations().each)
    if (one.begin >= timeline.from() && one.begin < timeline.to())
      begun[std::min(static_cast<std::size_t>(scale.position(one.begin)), JSON_COLUMNS - 1)]++;
  return begun;
}

}  // namespace

// All of it, and to scale: what a page leaves out or folds, it does for people.
Json timeline_json(const Timeline& timeline) {
  TimeScale scale({{timeline.from(), timeline.to()}}, JSON_COLUMNS, 0);
  Json processes = Json::array();
  for (const auto* of : timeline.by_host()) {
    const Timeline::Process& process = *of;
    if (process.empty()) continue;
    Json threads = Json::array(), streams = Json::array();
    for (std::size_t index : process.threads)
      threads.push_back(thread_json(timeline, timeline.thread(index), scale));
    for (std::size_t index : process.streams) {
      const auto& stream = timeline.stream(index);
      streams.push_back({{"stream", hexadecimal(stream.handle)},
                         {"enqueued", stream.enqueued},
                         {"columns", count_columns(stream.bars, scale)}});
      if (stream.tid) streams.back()["tid"] = stream.tid;
    }
    processes.push_back({{"pid", process.pid},
                         {"comm", timeline.names().text(process.comm)},
                         {"threads", threads},
                         {"streams", streams}});
    if (process.host) processes.back()["host"] = timeline.names().text(process.host);
    for (const TimeSpan& window : process.windows)
      processes.back()["gpu_windows_us"].push_back(
          {microseconds(window.begin), microseconds(window.end)});
    if (!process.queues.empty()) processes.back()["queues"] = queues_json(timeline, process, scale);
    if (const ThreadWork* busiest = timeline.execution().thread();
        busiest && busiest->process == process.number)
      processes.back()["execution"] = {{"tid", busiest->tid},
                                       {"phases", phases_json(timeline.execution().phases())},
                                       {"iterations", iterations_json(timeline, scale)}};
  }
  Json json = {{"from_us", microseconds(timeline.from())},
               {"to_us", microseconds(timeline.to())},
               {"step_us", microseconds(timeline.to() - timeline.from()) / JSON_COLUMNS},
               {"processes", processes},
               {"calls_of_more_threads", timeline.left_out_of_threads()},
               {"calls_of_more_streams", timeline.left_out_of_streams()}};
  if (timeline.left_out_of_queues())
    json["operations_of_more_queues"] = timeline.left_out_of_queues();
  return json;
}

}  // namespace cudabpf::analyze
