#include "analyze/export/tracks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/merged_hosts.hpp"
#include "analyze/work.hpp"
#include "trace/header.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

using Shape = TrackWriter::Shape;

// A multiple of this is added to distinguish reused pids: such numbers are pids of no process, or,
// in a merge, of one of another host.
constexpr std::uint32_t ANOTHER_PROCESS = PIDS_OF_HOST;
constexpr std::uint32_t MAX_AGAIN = 400;
// A trace says when work was put into a stream, but not when the GPU did it.
constexpr std::string_view NOT_WHEN_RUN = ": when enqueued, not when run";

Shape shape_of(const Line& line) {
  if (line.has(Field::duration)) return Shape::slice;
  return line.unfinished ? Shape::endless : Shape::instant;
}

}  // namespace

Tracks::Tracks(Names& names, std::vector<TrackWriter*> writers, Part part)
    : names_(names),
      out_(names, std::move(writers)),
      part_(part),
      in_part_(!part.from),
      idle_(names, 0),
      at_work_({}, idle_),
      memory_(names, *this),
      blocks_(names, part, false) {}

// What follows from a line wherever it lies.
void Tracks::follow(const Line& line) {
  of_line_ = line.process;
  if (line.kind == LineKind::header) gpu_operations_ |= line.header->measures_gpus();
  if (line.kind == LineKind::gpu_times) gpu_times(line);
  if (!in_part_ && part_.has(line.ts) && line.kind != LineKind::header) begin_part();
  at_work_.line(line);
  memory_.line(line);
  blocks(line);
  for (const analyze::Process* gone : line.gone) forget(gone->pid);
  if (line.new_program) forget(line.pid);  // it gets new tracks, too
}

void Tracks::outside(const Line& line) {
  out_.outside(line);
  follow(line);
  if (line.kind == LineKind::communicator) communicator(line);
  if (line.kind == LineKind::process) named(line.pid);
}

// Memory that was allocated before is held from the beginning.
void Tracks::begin_part() {
  in_part_ = true;
  memory_.live().each([&](const LiveMemory::Block& block) { set_memory(block, part_.from, true); });
  blocks_.each([&](const Blocks::Allocator& allocator) {
    set_blocks(allocator, part_.from, allocator.levels().now.allocated);
  });
}

void Tracks::line(const Line& line) {
  if (line.kind == LineKind::header) {
    if (!begun_) out_.start(line.header->clocks.value_or(TraceClocks{}));
    begun_ = true;
  }
  if (kept_ >= MAX_TRACKS) begin_anew(line.ts);
  follow(line);
  switch (line.kind) {
    case LineKind::call:
      return call(line);
    case LineKind::driver:
      return driver(line);
    case LineKind::interrupt:
      return interrupt(line);
    case LineKind::gpu_error:
      return gpu_error(line);
    case LineKind::gpu_sample:
      return gpu_sample(line);
    case LineKind::gpu_operation:
      return gpu_operation(line);
    case LineKind::gpu_window:
      return gpu_window(line);
    case LineKind::lost:
      return lost(line);
    case LineKind::process:
      return named(line.pid);
    case LineKind::graph:
      return out_.graph(line);
    case LineKind::communicator:
      return communicator(line);
    case LineKind::range:
      return range(line);
    default:
      return;
  }
}

void Tracks::finish(const TraceFacts& facts) {
  draw_operations();
  for (auto& [pid, process] : processes_) close(process);
  draw_execution(facts);
  if (const auto& merged = facts.header.merged; order_bound(merged) != OrderBound{})
    out_.note(machine_track("the hosts' clocks"), part_.clipped(0), "order of events",
              {{"so", order_text(merged)}});
  for (const std::string& why : facts.cut_off)
    missing(facts.last_ts, "the trace was cut off", "why", why);
  if (flows_left_out_)
    missing(facts.last_ts, "arrows that were too many at once", "count",
            fmt::format("{}", flows_left_out_));
  if (operations_left_out_)
    missing(facts.last_ts, "what was done at once in more ways than is kept apart", "count",
            fmt::format("{}", operations_left_out_));
  if (memory_.live().left_out().any())
    missing(facts.last_ts, "memory that was too much to be followed", "so",
            text_of(memory_.live().left_out()));
  out_.finish(facts);
}

void Tracks::call(const Line& line) {
  Process& process = this->process(line.pid);
  Thread& thread = this->thread(process, line.tid);
  std::vector<std::uint64_t> flows;
  // Calls that began later and have not come by now were inside this one, and are missing.
  flows_kept_ -= thread.flows.size();
  for (; !thread.flows.empty() && thread.flows.back().call >= line.id; thread.flows.pop_back())
    if (thread.flows.back().call == line.id) flows.push_back(thread.flows.back().id);
  bool outermost = is_outermost(line);
  if (outermost) thread.flows.clear();  // the rest are of calls whose lines are missing
  flows_kept_ += thread.flows.size() + flows.size();
  bool counts = !line.failed() && is_counted(line);
  // Where the work's GPU times are known, a mark when it was enqueued would say less.
  bool measured = gpu_operations_ && !unmeasured_.contains(line.pid);
  bool enqueues = counts && line.async && line.has(Field::stream) && !line.captured && !measured;
  std::uint64_t flow = enqueues && shape_of(line) == Shape::slice ? ++flows_ : 0;
  if (outermost && !thread.nested.size()) {  // most calls: nothing was made inside
    begin(thread, line, {.begin = flows, .enqueues = flow});
    end(thread, line);
    if (enqueues) enqueued(process, line, flow);
  } else {
    if (enqueues && !flow) enqueued(process, line, 0);
    thread.nested.hold(line, std::move(flows), flow);
    held_++;
    if (outermost || held_ >= MAX_HELD) give_nested(thread);
  }
  if (line.has(Field::communicator)) collective(process, line);
  if (!counts) return;
  if (line.meaning->node == NodeWork::kernel && line.work == Work::launch)
    launched(process, line.end());
}

void Tracks::give_nested(Thread& thread) {
  held_ -= thread.nested.size();
  bool endless = false;
  thread.nested.give(
      [&](const NestedCalls::Held& held) {
        endless |= shape_of(held.line) == Shape::endless;
        begin(thread, held.line, {.begin = held.flows, .enqueues = held.enqueues});
        // Readers look for an arrow's end behind its beginning.
        if (held.enqueues) enqueued(process(held.line.pid), held.line, held.enqueues);
      },
      [&](const NestedCalls::Held& held) {
        if (shape_of(held.line) == Shape::slice) out_.end(thread.track, held.line);
      });
  if (endless) thread.track.id = 0;
}

void Tracks::begin(Thread& thread, const Line& line, const TrackWriter::Flows& flows) {
  flows_kept_ -= flows.begin.size();
  TrackWriter::Flows all = flows;
  Shape shape = shape_of(line);
  if (gpu_operations_ && shape == Shape::slice && gives_work(line.work) && !line.failed())
    all.issuing = line.id;
  out_.begin(thread.track, line, shape, all);
}

void Tracks::end(Thread& thread, const Line& line) {
  Shape shape = shape_of(line);
  if (shape == Shape::slice) out_.end(thread.track, line);
  if (shape == Shape::endless) thread.track.id = 0;
}

void Tracks::driver(const Line& line) {
  Process& process = this->process(line.pid);
  Thread& thread = this->thread(process, line.tid);
  if (!thread.driver.id)
    announce(thread.driver, Track::Kind::driver, &process.track, &thread.track,
             fmt::format("driver, thread {}", line.tid));
  TrackWriter::Flows flows;
  if (line.has(Field::call) && flows_kept_ >= MAX_FLOWS) {
    flows_left_out_++;
  } else if (line.has(Field::call)) {
    thread.flows.push_back({line.call, ++flows_});
    flows_kept_++;
    flows = {.end = flows_, .caller = &thread.track};
  }
  Shape shape = shape_of(line);
  out_.begin(thread.driver, line, shape, flows);
  if (shape == Shape::slice) out_.end(thread.driver, line);
}

// Interrupts on several CPUs overlap, and so may different kinds on one CPU.
void Tracks::interrupt(const Line& line) {
  std::string name = fmt::format("{}, CPU {}", names_.text(line.name), line.cpu);
  if (!line.has(Field::cpu)) name = names_.text(line.name);
  Track& track = machine_track("interrupts: " + name);
  Shape shape = shape_of(line);
  out_.begin(track, line, shape, {});
  if (shape == Shape::slice) out_.end(track, line);
}

void Tracks::gpu_error(const Line& line) {
  auto error = parsed(line.text);
  out_.note(machine_track("GPU errors"), line.ts, names_.text(line.name),
            {{"meaning", text_in(error, "meaning")},
             {"bus_id", text_in(error, "bus_id")},
             {"process", line.has(Field::pid) ? fmt::format("{}", line.pid) : ""}});
}

void Tracks::lost(const Line& line) {
  std::string count = line.has(Field::count) ? fmt::format("{}", line.count) : "not known";
  std::string name = fmt::format("{}: {}", names_.text(line.severity), names_.text(line.reason));
  missing(line.ts, name, "count", count);
}

void Tracks::missing(std::uint64_t ts, std::string_view what, const char* fact, std::string how) {
  Track& track = machine_track("what is missing");
  out_.note(track, ts, what, {{fact, how}});
}

// A process may be seen before its name is known.
void Tracks::named(std::uint32_t pid) {
  auto known = processes_.find(pid);
  if (known == processes_.end()) return;
  known->second.track.name = process_name(pid);
  out_.track(known->second.track);
}

// The default streams of all contexts are on one track.
void Tracks::enqueued(Process& process, const Line& call, std::uint64_t flow) {
  StreamKey key = stream_of(call);
  key.context = 0;
  auto [at, is_new] = process.streams.try_emplace(key);
  Track& stream = at->second;
  kept_ += is_new;
  if (is_new)
    announce(stream, Track::Kind::stream, &process.track, &process.track,
             key.tid ? fmt::format("stream {:#x} of thread {}{}", key.handle, key.tid, NOT_WHEN_RUN)
                     : fmt::format("stream {:#x}{}", key.handle, NOT_WHEN_RUN));
  out_.enqueued(stream, call, flow);
}

// Its pid, unless another process's tracks have that number.
std::uint32_t Tracks::number_for(std::uint32_t pid) {
  std::uint32_t number = pid;
  for (std::uint32_t i = 0; i < MAX_AGAIN && numbers_.contains(number); i++)
    number += ANOTHER_PROCESS;
  if (numbers_.size() < MAX_TRACKS) numbers_.insert(number);
  return number;
}

Tracks::Process& Tracks::process(std::uint32_t pid) {
  if (last_process_ && last_process_->track.pid == pid) return *last_process_;
  auto at = processes_.find(pid);
  if (at == processes_.end()) {
    forget_operations(pid);
    at = processes_.try_emplace(pid).first;
    kept_++;
    Track& track = at->second.track;
    track.pid = pid;
    track.process = number_for(pid);
    announce(track, Track::Kind::process, &track, nullptr, process_name(pid));
    if (of_line_ && of_line_->pid == pid && by_number_.size() < MAX_TRACKS)
      by_number_[of_line_->number] = track;
  } else if (at->second.track.name.empty() && !process_name(pid).empty()) {
    named(pid);  // it was there for its memory alone
  }
  last_process_ = &at->second;
  return at->second;
}

Tracks::Thread& Tracks::thread(Process& process, std::uint32_t tid) {
  auto [at, is_new] = process.threads.try_emplace(tid);
  Thread& thread = at->second;
  kept_ += is_new;
  // Nothing can follow a call without an end on its track (id 0 then): a later thread with the same
  // tid gets a new one.
  if (thread.track.id) return thread;
  thread.track.tid = tid;
  bool main = tid == process.track.pid;
  announce(thread.track, Track::Kind::thread, &process.track, &process.track,
           main ? process.track.name : "");
  return thread;
}

// Writes what is still to be written of the process.
void Tracks::close(Process& process) {
  for (auto& [tid, thread] : process.threads) {
    give_nested(thread);
    flows_kept_ -= thread.flows.size();
    thread.flows.clear();
  }
  count_launches(process, ~std::uint64_t{0});
  for (Counter& counter : process.memory) write(counter);
  for (auto& [gpu, counter] : process.blocks) write(counter);
  write(process.launches);
}

void Tracks::forget(std::uint32_t pid) {
  unmeasured_.erase(pid);
  auto at = processes_.find(pid);
  if (at == processes_.end()) return;
  close(at->second);
  last_process_ = nullptr;
  kept_ -= 1 + at->second.threads.size() + at->second.streams.size();
  for (const auto& [of, lanes] : at->second.ranges) kept_ -= lanes.size();
  if (gpu_operations_) keep_for_operations(pid, at->second.track);
  processes_.erase(at);
}

void Tracks::begin_anew(std::uint64_t ts) {
  draw_operations();
  while (!processes_.empty()) forget(processes_.begin()->first);
  communicators_.clear();
  while (!on_gpus_.empty()) forget_operations(on_gpus_.begin()->first);
  missing(ts, "more tracks than are kept apart", "so", "all of them begin anew, counters from 0");
}

void Tracks::announce(Track& track, Track::Kind kind, const Track* process, const Track* parent,
                      std::string name) {
  track.id = ++tracks_;
  track.kind = kind;
  track.parent = parent ? parent->id : 0;
  if (process) {
    track.pid = process->pid;
    track.process = process->process;
  }
  track.name = std::move(name);
  out_.track(track);
}

Track& Tracks::machine_track(const std::string& name, Track::Kind kind, bool bytes) {
  if (machine_.size() >= MAX_TRACKS) machine_.clear();
  Track& track = machine_[name];
  if (track.id) return track;
  track.bytes = bytes;
  announce(track, kind, nullptr, nullptr, name);
  return track;
}

std::string Tracks::process_name(std::uint32_t pid) const {
  if (!of_line_ || of_line_->pid != pid) return {};
  std::string name(names_.text(of_line_->comm));
  if (of_line_->host) name += fmt::format(" on {}", names_.text(of_line_->host));
  return name;
}

}  // namespace cudabpf::analyze
