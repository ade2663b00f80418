#include "analyze/gaps/idle.hpp"

#include <algorithm>

#include "analyze/derived/processes.hpp"
#include "trace/read/handles.hpp"
#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {

// 0: it names none.
std::uint64_t event_of(const Line& line) { return handle_in(line.args, "hEvent"); }

// The context that it waits for: its argument, or the current one. 0: not known.
std::uint64_t context_of(const Line& wait) {
  std::uint64_t named = handle_in(wait.args, "ctx");
  return named ? named : wait.context;
}

}  // namespace

void Idle::OfProcess::add(const OfProcess& other) {
  working_time += other.working_time;
  idle.add(other.idle);
  between.add(other.between);
  in_calls += other.in_calls;
  untimed += other.untimed;
  for (auto [name, time] : other.meanwhile) meanwhile[name] += time;
  untimed_waits += other.untimed_waits;
  lost_track |= other.lost_track;
}

Idle::Idle(Names& names, std::size_t at_most, Part part)
    : names_(names),
      part_(part),
      others_name_(names.add("(others)")),
      longest_idle_(at_most),
      longest_between_(at_most) {}

void Idle::line(const Line& line) {
  if (line.new_program) empty(state_of(line));
  if (line.kind == LineKind::call && is_counted(line)) {
    State& process = state_of(line);
    pending_ -= process.pending.size();
    call(line, process);
    pending_ += process.pending.size();
    until_now_ = process.figures.idle.total();
  }
  for (const Process* gone : line.gone) {
    auto at = processes_.find(gone->number);
    if (at == processes_.end()) continue;
    empty(at->second);
    close(at->second.figures);
    processes_.erase(at);
    last_ = nullptr;
  }
}

Idle::State& Idle::state_of(const Line& line) {
  std::uint64_t number = line.process->number;
  if (last_ && number == last_number_) return *last_;
  last_number_ = number;
  last_ = &processes_[number];
  last_->figures.number = line.process->number;
  last_->figures.pid = line.pid;
  last_->figures.comm = line.process->comm;
  return *last_;
}

void Idle::call(const Line& line, State& process) {
  Work kind = line.work;
  if (gives_work(kind) && !line.failed()) return work(line, kind, process);
  if (process.is_idle) {
    if (std::uint64_t time = process.gap.spend(line, part_))
      add_time(process.meanwhile, line.name.id, time);
  } else if (process.launched) {
    process.between.spend(line, part_);
  }
  EventEffect event = line.meaning->event;
  StreamEffect stream = line.meaning->stream;
  if (event == EventEffect::record) {
    if (!line.failed()) recorded(line, process);
  } else if (event == EventEffect::destroy) {
    events_ -= process.events.erase(event_of(line));
  } else if (kind == Work::wait) {
    process.launched = false;
    if (!line.has(Field::duration)) process.figures.untimed_waits += part_.has(line);
    if (line.has(Field::duration) && !line.failed()) done(line, process);
  } else if (event == EventEffect::query || stream == StreamEffect::query) {
    if (line.has(Field::ret) && line.ret == 0) done(line, process);
  } else if (line.context_gone || (stream == StreamEffect::destroy && !line.failed())) {
    destroyed(line, process);
  }
}

// The work of a destroyed stream or context is no longer pending.
void Idle::destroyed(const Line& line, State& process) {
  if (!line.context_gone)
    process.pending.erase(stream_of(line));
  else
    std::erase_if(process.pending,
                  [&](const auto& stream) { return stream.second.context == line.context_gone; });
}

void Idle::work(const Line& line, Work kind, State& process) {
  OfProcess& figures = process.figures;
  if (!figures.first_work) figures.first_work = line.ts;
  figures.last_work = std::max(figures.last_work, line.end());
  if (process.is_idle) {
    Gap& gap = process.gap;
    if (line.wanted && gap.close(line, part_)) {
      figures.idle.add(gap.time());
      figures.in_calls += gap.in_calls;
      figures.untimed += gap.untimed;
      for (auto [name, time] : process.meanwhile) add_time(figures.meanwhile, name, time);
      idle_by_range_.add(figures.number, line.place, gap.time());
      longest_idle_.add(gap);
    }
    process.is_idle = false;
  }
  if (kind == Work::launch) {
    if (process.launched && line.wanted && line.ts > process.between.begin &&
        process.between.close(line, part_)) {
      figures.between.add(process.between.time());
      longest_between_.add(process.between);
    }
    process.launched = true;
    process.between = Gap(line);
  }
  bool returns_when_done = (kind == Work::to_host || kind == Work::to_device) && !line.async;
  if (!returns_when_done) {
    StreamKey stream = stream_of(line);
    bool too_many =
        process.pending.size() >= MAX_STREAMS || process.pending.size() + pending_ >= MAX_PENDING;
    if (too_many && !process.pending.contains(stream)) {
      figures.lost_track = true;
      return;
    }
    // A call under way when a wait begins may give work that the wait does not cover.
    Given& given = process.pending[stream];
    given = {std::max(given.ts, line.end()), line.context};
    return;
  }
  process.launched = false;
  if (!line.has(Field::duration)) {
    figures.untimed_waits += part_.has(line);
    return;
  }
  done(line, process);
}

// Removes the work that a wait, a waiting copy or a successful query has seen done.
void Idle::done(const Line& line, State& process) {
  auto& pending = process.pending;
  auto finish = [&](const StreamKey& stream, std::uint64_t until) {
    auto at = pending.find(stream);  // another thread may have given it more meanwhile
    if (at != pending.end() && at->second.ts <= until) pending.erase(at);
  };
  if (line.op == Op::ctx) {
    std::uint64_t context = context_of(line);
    std::erase_if(pending, [&](const auto& stream) {
      const Given& given = stream.second;
      bool is_its = !context || !given.context || context == given.context;
      return is_its && given.ts <= line.ts;
    });
  } else if (line.op == Op::event || line.type == Type::event) {
    auto event = process.events.find(event_of(line));
    if (event != process.events.end()) finish(event->second.stream, event->second.ts);
  } else {
    StreamKey stream = stream_of(line);
    finish(stream, line.ts);
    if (stream.context) {  // work may have been given to it before its context was known
      stream.context = 0;
      finish(stream, line.ts);
    }
  }
  perhaps_idle(line, process);
}

void Idle::perhaps_idle(const Line& line, State& process) {
  const OfProcess& figures = process.figures;
  if (!process.pending.empty() || process.is_idle || figures.lost_track || !figures.first_work)
    return;
  process.is_idle = true;
  process.launched = false;
  process.gap = Gap(line);
  process.meanwhile.clear();
}

void Idle::recorded(const Line& line, State& process) {
  std::uint64_t event = event_of(line);
  auto at = process.events.find(event);
  if (at == process.events.end()) {
    if (events_ >= MAX_EVENTS) return;
    at = process.events.try_emplace(event).first;
    events_++;
  }
  at->second = {stream_of(line), line.ts};
}

// The process has no CUDA state left.
void Idle::empty(State& process) {
  events_ -= process.events.size();
  process.events.clear();
  pending_ -= process.pending.size();
  process.pending.clear();
  process.is_idle = process.launched = false;
}

void Idle::add_time(Times& times, std::uint32_t function, std::uint64_t time) const {
  bool too_many = !has_room_for(times, function, MAX_FUNCTIONS) &&
                  times.size() - times.count(others_name_.id) >= MAX_FUNCTIONS;
  times[too_many ? others_name_.id : function] += time;
}

void Idle::close(OfProcess& figures) {
  if (!figures.first_work || !part_.touches(figures.first_work, figures.last_work)) return;
  figures.first_work = part_.clipped(figures.first_work);
  figures.last_work = part_.clipped(figures.last_work);
  figures.working_time = figures.last_work - figures.first_work;
  if (auto left = closed_.add(std::move(figures))) {
    others_.add(*left);
    other_processes_++;
  }
}

void Idle::finish(const TraceFacts&) {
  for (auto& [number, process] : processes_) close(process.figures);
  processes_.clear();
  last_ = nullptr;
  done_ = closed_.take();
  idle_ = longest_idle_.take();
  between_ = longest_between_.take();
}

}  // namespace cudabpf::analyze
