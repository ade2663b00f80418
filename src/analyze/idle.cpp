#include "analyze/idle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/handles.hpp"
#include "util/table.hpp"

namespace cudabpf::analyze {

namespace {

bool longer(const Gap& a, const Gap& b) { return a.time() > b.time(); }

// 0: it names none.
std::uint64_t event_of(const Line& line) { return handle_in(line.args, "hEvent"); }

// Two names of one stream, and one name of a stream that each thread has.
std::uint64_t stream_of(const Line& line) {
  if (line.stream == PER_THREAD_STREAM) return std::uint64_t{1} << 63 | line.tid;
  return line.stream == LEGACY_STREAM ? 0 : line.stream;
}

}  // namespace

Gap::Gap(const Line& line)
    : pid(line.pid), tid(line.tid), begin(line.end()), after(line.id), after_name(line.name) {}

std::uint64_t Gap::spend(const Line& line) {
  if (line.tid != tid || line.end() <= begin) return 0;
  std::uint64_t time = line.end() - std::max(line.ts, begin);
  in_calls += time;
  if (time > longest) {
    longest = time;
    longest_call = line.name;
  }
  return time;
}

void Gap::close(const Line& line) {
  end = std::max(line.ts, begin);
  until = line.id;
  until_name = line.name;
  in_calls = std::min(in_calls, time());
}

void LongestGaps::add(const Gap& gap) {
  if (!at_most_ || (heap_.size() == at_most_ && !longer(gap, heap_.front()))) return;
  if (heap_.size() == at_most_) {
    std::pop_heap(heap_.begin(), heap_.end(), longer);
    heap_.pop_back();
  }
  heap_.push_back(gap);
  std::push_heap(heap_.begin(), heap_.end(), longer);
}

std::vector<Gap> LongestGaps::take() {
  std::sort(heap_.begin(), heap_.end(), longer);
  return std::move(heap_);
}

Idle::Idle(Names& names, std::size_t at_most)
    : names_(names),
      work_of_(names),
      event_(names.add("event")),
      stream_(names.add("stream")),
      record_(names.add("record")),
      query_(names.add("query")),
      destroy_(names.add("destroy")),
      ctx_(names.add("ctx")),
      exit_(names.add("exit")),
      fork_(names.add("fork")),
      longest_idle_(at_most),
      longest_between_(at_most) {}

void Idle::line(const Line& line) {
  if (line.kind == LineKind::call && !line.has(Field::parent)) {
    Process& process = processes_[line.pid];
    process.figures.pid = line.pid;
    call(line, process);
  } else if (line.kind == LineKind::process && (line.op == exit_ || line.op == fork_)) {
    auto at = processes_.find(line.pid);
    if (at == processes_.end()) return;
    close(at->second);
    processes_.erase(at);
  }
}

void Idle::call(const Line& line, Process& process) {
  Work kind = work_of_(line);
  if (gives_work(kind) && !line.failed()) return work(line, kind, process);
  if (process.is_idle) {
    if (std::uint64_t time = process.gap.spend(line)) process.meanwhile[line.name.id] += time;
  } else if (process.launched) {
    process.between.spend(line);
  }
  bool about_event = line.type == event_, about_stream = line.type == stream_;
  if (about_event && line.op == record_) {
    if (!line.failed()) recorded(line, process);
  } else if (about_event && line.op == destroy_) {
    process.events.erase(event_of(line));
  } else if (kind == Work::wait) {
    process.launched = false;
    if (!line.has(Field::duration)) process.figures.untimed_waits++;
    if (line.has(Field::duration) && !line.failed()) done(line, process);
  } else if ((about_event || about_stream) && line.op == query_) {
    if (line.has(Field::ret) && line.ret == 0) done(line, process);
  } else if (about_stream && line.op == destroy_ && !line.failed()) {
    process.pending.erase(stream_of(line));
  }
}

void Idle::work(const Line& line, Work kind, Process& process) {
  OfProcess& figures = process.figures;
  if (!figures.first_work) figures.first_work = line.ts;
  figures.last_work = std::max(figures.last_work, line.end());
  if (process.is_idle) {
    Gap& gap = process.gap;
    gap.close(line);
    figures.idle.add(gap.time());
    figures.in_calls += gap.in_calls;
    for (auto [name, time] : process.meanwhile) figures.meanwhile[name] += time;
    longest_idle_.add(gap);
    process.is_idle = false;
  }
  if (kind == Work::launch) {
    if (process.launched && line.ts > process.between.begin) {
      process.between.close(line);
      figures.between.add(process.between.time());
      longest_between_.add(process.between);
    }
    process.launched = true;
    process.between = Gap(line);
  }
  bool returns_when_done = (kind == Work::to_host || kind == Work::to_device) && !line.async;
  if (!returns_when_done) {
    // One that is under way when a wait begins may come after what is waited for.
    std::uint64_t& given = process.pending[stream_of(line)];
    given = std::max(given, line.end());
    return;
  }
  process.launched = false;
  if (!line.has(Field::duration)) {
    figures.untimed_waits++;
    return;
  }
  done(line, process);
}

// What a wait, a copy that waits or a query that says so has seen the end of.
void Idle::done(const Line& line, Process& process) {
  auto& pending = process.pending;
  auto finish = [&](std::uint64_t stream, std::uint64_t until) {
    auto at = pending.find(stream);  // another thread may have given it more meanwhile
    if (at != pending.end() && at->second <= until) pending.erase(at);
  };
  if (line.op == ctx_) {
    std::erase_if(pending, [&](const auto& stream) { return stream.second <= line.ts; });
  } else if (line.op == event_ || line.type == event_) {
    auto event = process.events.find(event_of(line));
    if (event != process.events.end()) finish(event->second.stream, event->second.ts);
  } else {
    finish(stream_of(line), line.ts);
  }
  perhaps_idle(line, process);
}

void Idle::perhaps_idle(const Line& line, Process& process) {
  if (!process.pending.empty() || process.is_idle || !process.figures.first_work) return;
  process.is_idle = true;
  process.launched = false;
  process.gap = Gap(line);
  process.meanwhile.clear();
}

void Idle::recorded(const Line& line, Process& process) {
  std::uint64_t event = event_of(line);
  if (process.events.size() < MAX_EVENTS || process.events.contains(event))
    process.events[event] = {stream_of(line), line.ts};
}

void Idle::close(Process& process) { done_.push_back(std::move(process.figures)); }

void Idle::finish(const TraceFacts&) {
  for (auto& [pid, process] : processes_) close(process);
  processes_.clear();
  std::erase_if(done_, [](const OfProcess& process) { return !process.first_work; });
  std::sort(done_.begin(), done_.end(), [](const OfProcess& a, const OfProcess& b) {
    return std::pair(b.idle.total(), a.pid) < std::pair(a.idle.total(), b.pid);
  });
  idle_ = longest_idle_.take();
  between_ = longest_between_.take();
}

namespace {

Json times_json(const Durations& times) {
  Json json = {{"count", times.count()}, {"total_us", microseconds(times.total())}};
  if (!times.count()) return json;
  json["mean_us"] = microseconds(times.mean());
  json["p50_us"] = microseconds(times.quantile(0.5));
  json["p99_us"] = microseconds(times.quantile(0.99));
  json["max_us"] = microseconds(times.max());
  return json;
}

Json gap_json(const Gap& gap, const Names& names) {
  Json json = {{"begin_us", microseconds(gap.begin)},
               {"time_us", microseconds(gap.time())},
               {"pid", gap.pid},
               {"tid", gap.tid},
               {"after", {{"id", gap.after}, {"name", names.text(gap.after_name)}}},
               {"until", {{"id", gap.until}, {"name", names.text(gap.until_name)}}},
               {"in_calls_us", microseconds(gap.in_calls)}};
  if (gap.longest_call)
    json["longest_call"] = {{"name", names.text(gap.longest_call)},
                            {"time_us", microseconds(gap.longest)}};
  return json;
}

void add_gaps(Page& page, std::string title, const std::vector<Gap>& gaps, const Names& names,
              bool several_processes) {
  Table table(
      std::move(title),
      {{"at"}, {"time"}, {"outside CUDA"}, {"process"}, {"longest call", 2, true}, {"", 2}});
  for (const Gap& gap : gaps)
    table.row(
        fmt::format("{} to {}", names.text(gap.after_name), names.text(gap.until_name)),
        {seconds(gap.begin), human_time(gap.time()), percent(gap.time() - gap.in_calls, gap.time()),
         several_processes ? std::to_string(gap.pid) : "",
         std::string(names.text(gap.longest_call)), gap.longest ? human_time(gap.longest) : ""});
  if (!table.empty()) table.add_to(page);
}

// Of how long from its first work to its last each process spent so.
void add_times(Page& page, std::string title, const Idle& idle,
               const Durations& (*times_of)(const Idle::OfProcess&)) {
  Table table(std::move(title),
              {{"share"}, {"total"}, {"times"}, {"p50", 1}, {"p99", 2}, {"longest"}});
  for (const auto& process : idle.processes()) {
    const Durations& times = times_of(process);
    if (!times.count()) continue;
    table.row(
        fmt::format("process {}", process.pid),
        {percent(times.total(), process.last_work - process.first_work), human_time(times.total()),
         human_count(times.count()), human_time(times.quantile(0.5)),
         human_time(times.quantile(0.99)), human_time(times.max())});
  }
  if (!table.empty()) table.add_to(page);
}

}  // namespace

Json idle_json(const Idle& idle) {
  const Names& names = idle.names();
  Json processes = Json::array(), longest = Json::array(), between = Json::array();
  for (const auto& process : idle.processes()) {
    Json meanwhile = Json::object();
    for (auto [name, time] : process.meanwhile)
      meanwhile[std::string(names.text({name}))] = microseconds(time);
    processes.push_back({{"pid", process.pid},
                         {"first_work_us", microseconds(process.first_work)},
                         {"last_work_us", microseconds(process.last_work)},
                         {"idle", times_json(process.idle)},
                         {"idle_in_calls_us", microseconds(process.in_calls)},
                         {"idle_in_calls", meanwhile},
                         {"between_launches", times_json(process.between)},
                         {"untimed_waits", process.untimed_waits}});
  }
  for (const Gap& gap : idle.longest_idle()) longest.push_back(gap_json(gap, names));
  for (const Gap& gap : idle.longest_between()) between.push_back(gap_json(gap, names));
  return {{"processes", processes}, {"longest_idle", longest}, {"longest_between", between}};
}

void add_idle(Page& page, const Idle& idle) {
  bool several = idle.processes().size() > 1;
  add_times(page, "GPU probably idle", idle,
            [](const Idle::OfProcess& process) -> const Durations& { return process.idle; });
  for (const auto& process : idle.processes()) {
    if (process.idle.count())
      page.paragraph(
          fmt::format("Process {} was outside CUDA calls for {} of it.", process.pid,
                      percent(process.idle.total() - process.in_calls, process.idle.total())),
          2);
    else
      page.paragraph(fmt::format("The GPU was never seen to be idle for process {}: something was "
                                 "pending all the time.",
                                 process.pid),
                     2);
    if (process.untimed_waits)
      page.paragraph(fmt::format("{} of process {} have no return in this trace: whether the GPU "
                                 "was idle after them is not known.",
                                 count_of(process.untimed_waits, "wait", "waits"), process.pid),
                     2);
  }
  if (idle.processes().empty()) page.line("Nothing was launched or copied.");
  add_gaps(page, "longest idle", idle.longest_idle(), idle.names(), several);
  add_times(page, "between launches", idle,
            [](const Idle::OfProcess& process) -> const Durations& { return process.between; });
  add_gaps(page, "longest between launches", idle.longest_between(), idle.names(), several);
}

}  // namespace cudabpf::analyze
