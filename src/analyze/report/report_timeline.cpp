#include "analyze/report/report_timeline.hpp"

#include <algorithm>

#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

// A call that did not return lasts until its thread does something else.
void end_before_next(ReportRow& row, const std::vector<LaneEvent>& kinds) {
  for (std::size_t i = 0; i + 1 < row.size(); i++) {
    if (kinds[row[i].kind].category != Category::unfinished || row[i].count > 1) continue;
    row[i].end = std::min(row[i].end, row[i + 1].begin);
    row[i].busy = row[i].longest = row[i].time();
  }
}

}  // namespace

void ReportTimeline::Activity::merge(const Activity& next) {
  launches += next.launches;
  to_device = saturating_sum(to_device, next.to_device);
  to_host = saturating_sum(to_host, next.to_host);
  other_copies = saturating_sum(other_copies, next.other_copies);
}

void ReportTimeline::Sampled::merge(const Sampled& next) {
  active += next.active;
  watts += next.watts;
  actives += next.actives;
  powers += next.powers;
}

ReportTimeline::ReportTimeline(Names& names, std::size_t most_events)
    : events_(names), rows_(most_events, most_events / 4 * 3) {}

void ReportTimeline::outside(const Line& line) {
  events_.learn(line);
  if (line.kind == LineKind::gpu_window && line.wanted && line.end() <= LATEST)
    owners_.window(line);
}

void ReportTimeline::line(const Line& line) {
  outside(line);
  if (line.kind == LineKind::call) count(line);
  if (line.kind == LineKind::call || line.kind == LineKind::driver) on_thread(line);
  if (line.kind == LineKind::range && has_bar(line)) range(line);
  if (line.kind == LineKind::gpu_operation) gpu_operation(line);
  if (line.sample) gpu_sample(*line.sample);
  owners_.seen(line);
}

void ReportTimeline::finish(const TraceFacts& facts) {
  from_ = std::min(facts.part.clipped(0), LATEST);
  to_ = std::min(facts.part.clipped(facts.duration()), LATEST);
  to_ = std::max(to_, from_ + 1);
  each_row(sort_row<ReportEvent>);
  for (Owners::Thread& thread : owners_.threads())
    for (ReportRow& row : thread.rows) end_before_next(row, kinds_.all());
  events_.settle();
}

template <typename Each>
void ReportTimeline::each_row(Each&& each) {
  for (Owners::Thread& thread : owners_.threads()) {
    for (ReportRow& row : thread.rows) each(row);
    for (ReportRow& row : thread.ranges) each(row);
  }
  for (Owners::Queue& queue : owners_.queues()) each(queue.row);
}

void ReportTimeline::on_thread(const Line& line) {
  Owners::Thread* thread = owners_.thread_of(line);
  if (!thread) {
    left_out_.of_threads++;
    return;
  }
  LaneRow row = row_of(line);
  std::uint32_t number = 0;
  if (row != DRIVER && line.has(Field::stream))
    if (const auto* stream = owners_.stream_of(line, stream_of(line)))
      number = static_cast<std::uint32_t>(stream - owners_.streams().data()) + 1;
  add(thread->rows[row], line, owners_.span_of(line).end, number);
}

void ReportTimeline::range(const Line& line) {
  Owners::Thread* thread = owners_.thread_of(line);
  if (!thread) return;
  std::size_t depth = depth_of(line);
  if (thread->ranges.size() <= depth) thread->ranges.resize(depth + 1);
  add(thread->ranges[depth], line, owners_.span_of(line).end, 0);
}

void ReportTimeline::gpu_operation(const Line& line) {
  if (Owners::Queue* queue = owners_.queue_of(line))
    add(queue->row, line, line.end(), 0);
  else
    left_out_.of_queues++;
}

void ReportTimeline::add(ReportRow& row, const Line& line, std::uint64_t end,
                         std::uint32_t stream) {
  if (line.ts > LATEST) {
    left_out_.too_late++;
    return;
  }
  ReportEvent event;
  event.begin = line.ts;
  event.end = std::clamp(end, line.ts, LATEST);
  event.id = line.kind == LineKind::call ? line.id : line.call;
  event.busy = event.longest = event.time();
  event.kind = kinds_.add(events_.of(line));
  event.stream = stream;
  // A short one will most likely be merged, and then has none.
  if (event.time() >> rows_.resolution() || !rows_.resolution())
    event.details = details_.of(line, events_.names());
  rows_.add(row, event, [this](auto&& each) { each_row(each); });
}

void ReportTimeline::count(const Line& call) {
  if (call.ts > LATEST || !is_counted(call) || call.failed()) return;
  Work work = call.work;
  if (work == Work::launch) activity_.at(call.ts).launches++;
  if (!call.has(Field::size)) return;
  if (work == Work::to_device || work == Work::to_host || work == Work::copy) {
    Activity& now = activity_.at(call.ts);
    auto& bytes = work == Work::to_device ? now.to_device
                  : work == Work::to_host ? now.to_host
                                          : now.other_copies;
    bytes = saturating_sum(bytes, call.size);
  }
}

void ReportTimeline::gpu_sample(const GpuSample& sample) {
  if (sample.ts > LATEST || !has_room_for(gpus_, sample.device, MAX_GPUS)) return;
  Sampled& now = gpus_[sample.device].at(sample.ts);
  if (sample.sm_active) now.merge({*sample.sm_active, 0, 1, 0});
  if (sample.power_w) now.merge({0, *sample.power_w, 0, 1});
}

}  // namespace cudabpf::analyze
