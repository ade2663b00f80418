// What GPUs did, as tracks below the issuing process: for each GPU a track per queue.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/export/tracks.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

// "stream 7 (0x55d0), overlapping 1"
std::string name_of_lane(const QueueKey& key, const std::string& handle, std::size_t number) {
  std::string name = stream_name(key, handle);
  return number == 1 ? name : fmt::format("{}, overlapping {}", name, number - 1);
}

}  // namespace

// Without GPU times, all that is known of a process's work is when it was enqueued.
void Tracks::gpu_times(const Line& line) {
  auto times = parsed(line.text);
  if (times.contains("why") && unmeasured_.size() < MAX_TRACKS) unmeasured_.insert(line.pid);
}

void Tracks::gpu_window(const Line& line) {
  Process& process = this->process(line.pid);
  auto name_of = [](std::size_t) { return std::string("GPU times recorded"); };
  if (Lane* lane =
          free_lane(process.windows, line, Track::Kind::windows, process, process.track, name_of))
    out_.span(lane->track, {line.ts, line.end()}, "recorded", {});
}

void Tracks::gpu_operation(const Line& line) {
  QueueKey key = queue_of(line);
  learn_stream(on_gpus(line.pid).queues[key], key, line);
  operations_.add(line, [&](Line& work) { draw_work(work); });
}

void Tracks::draw_operations() {
  operations_.give_all([&](Line& work) { draw_work(work); });
}

void Tracks::draw_work(Line& work) {
  bool timed = work.has(Field::duration);
  Lane* lane = lane_for(work);
  if (!lane) {
    operations_left_out_++;
    return;
  }
  TrackWriter::Flows flows;
  if (const IssuingCall* call = work.issuer) {
    flows.queued = call->queued_until(work.ts);
    if (call->timed && part_.has(call->ts) && timed && is_first_of(call->id))
      flows.issued_by = call->id;
    if (call->graph && work.op == Type::graph) {
      work.graph = call->graph;
      work.set(Field::graph);
    }
  }
  out_.begin(lane->track, work, timed ? TrackWriter::Shape::slice : TrackWriter::Shape::instant,
             flows);
  if (timed) out_.end(lane->track, work);
}

// Null: too much overlaps. A point in time may lie on any slice.
Tracks::Lane* Tracks::lane_for(const Line& work) {
  OnGpus& of = on_gpus(work.pid);
  QueueKey key = queue_of(work);
  Queue& queue = of.queues[key];
  auto lane = std::find_if(queue.lanes.begin(), queue.lanes.end(), [&](const Lane& one) {
    return one.end <= work.ts || !work.has(Field::duration);
  });
  if (lane == queue.lanes.end()) {
    if (queue.lanes.size() == MAX_LANES) return nullptr;
    Track& gpu = of.gpus[key.device];
    if (!gpu.id) {
      announce(gpu, Track::Kind::gpu, &of.process, &of.process, gpu_name(key));
      kept_++;
      of.kept++;
    }
    lane = queue.lanes.insert(lane, Lane{});
    lane->track.group = gpu.name;
    announce(lane->track, Track::Kind::queue, &of.process, &gpu,
             name_of_lane(key, queue.handle, queue.lanes.size()));
    kept_++;
    of.kept++;
  }
  lane->end = std::max(lane->end, work.end());
  return &*lane;
}

// Not every line names its stream. Usually another one does before the first is drawn.
void Tracks::learn_stream(Queue& queue, const QueueKey& key, const Line& work) {
  if (!queue.handle.empty() || !work.has(Field::stream)) return;
  queue.handle = handle_name(work);
  for (std::size_t i = 0; i < queue.lanes.size(); i++) {
    Track& track = queue.lanes[i].track;
    track.name = name_of_lane(key, queue.handle, i + 1);
    out_.track(track);
  }
}

Tracks::OnGpus& Tracks::on_gpus(std::uint32_t pid) {
  auto known = on_gpus_.find(pid);
  if (known != on_gpus_.end()) return known->second;
  keep_for_operations(pid, process(pid).track);
  return on_gpus_[pid];
}

void Tracks::keep_for_operations(std::uint32_t pid, const Track& process) {
  auto [at, is_new] = on_gpus_.try_emplace(pid);
  if (!is_new) return;
  at->second.process = process;
  kept_++;
}

// From here on another process has the pid, and later lines belong to it.
void Tracks::forget_operations(std::uint32_t pid) {
  if (!on_gpus_.contains(pid)) return;
  draw_operations();
  kept_ -= on_gpus_[pid].kept;
  on_gpus_.erase(pid);
}

// Nodes of a graph have one call: one arrow leads to the first.
bool Tracks::is_first_of(std::uint64_t call) {
  if (!answered_.insert(call).second) return false;
  answered_order_.push_back(call);
  if (answered_order_.size() > MAX_ANSWERED) {
    answered_.erase(answered_order_.front());
    answered_order_.pop_front();
  }
  return true;
}

}  // namespace cudabpf::analyze
