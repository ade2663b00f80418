#include "merge/merger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "merge/ends.hpp"
#include "merge/lives.hpp"
#include "merge/meetings.hpp"
#include "merge/one_time.hpp"
#include "util/exit_codes.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::merge {

namespace {

using analyze::Line;
using analyze::LineKind;

constexpr std::size_t MANY_BYTES = std::size_t{256} << 10;  // of lines at once
constexpr std::uint64_t LONGEST = std::uint64_t{1} << 53;   // ns that every reader has exactly

std::string name_of(const Surveyed& trace) { return analyze::input_name(trace.files.front()); }

}  // namespace

// A trace while its lines are merged.
struct Merger::Source {
  Source(std::size_t which, MovedLines::To to, std::uint64_t& given)
      : index(which), moved(std::move(to), given) {}

  std::size_t index;
  MovedLines moved;
  std::unique_ptr<analyze::TraceReader> reader;
  const Line* line = nullptr;  // its next
  // When its line was written, at the earliest: none was before one that precedes it.
  std::uint64_t time = 0;
};

Merger::~Merger() = default;

Result<std::unique_ptr<Merger>> Merger::open(
    const std::vector<Files>& traces,
    const std::function<analyze::TraceReader::Progress()>& progress) {
  if (traces.size() > MAX_MERGED)
    return Error{fmt::format("{} traces: at most {} can be merged", traces.size(), MAX_MERGED),
                 {},
                 exit_code::USAGE};
  std::unique_ptr<Merger> merger(new Merger());
  for (const Files& files : traces) {
    Surveyed surveyed = TRY(survey(files, merger->machine_lines_, progress()));
    merger->machine_lines_.add(surveyed.facts);
    merger->surveyed_.push_back(std::move(surveyed));
  }
  TRY(merger->place());
  TRY(merger->refuse_twice());
  TRY(merger->open_sources());
  return merger;
}

// None where all were recorded on one machine, or only one of several has collectives.
Result<std::vector<std::vector<Meeting>>> Merger::meetings() const {
  std::set<std::string> machines;
  for (const Surveyed& trace : surveyed_)
    if (trace.has_collectives) machines.insert(trace.facts.header.boot_id);
  std::vector<std::vector<Meeting>> all;
  if (machines.size() < 2) return all;
  for (const Surveyed& trace : surveyed_)
    all.push_back(trace.has_collectives ? TRY(meetings_of(trace)) : std::vector<Meeting>{});
  return all;
}

Result<> Merger::place() {
  std::vector<TraceTimes> times;
  for (const Surveyed& trace : surveyed_) times.push_back(trace.times());
  std::vector<Placed> placed = on_one_time(times, TRY(meetings()));
  for (std::size_t i = 0; i < placed.size(); i++) {
    if (!placed[i].why_not.empty())
      return Error{
          fmt::format("{} cannot be merged: {}", name_of(surveyed_[i]), placed[i].why_not)};
    if (placed[i].offset_ns > LONGEST)
      return Error{fmt::format("{} begins {} after another of the traces", name_of(surveyed_[i]),
                               human_time(placed[i].offset_ns)),
                   "merge traces of the same run", exit_code::USAGE};
  }
  merged_ = TRY(described(surveyed_, placed));
  return ok();
}

// What a process did would be counted twice.
Result<> Merger::refuse_twice() const {
  std::map<std::uint32_t, std::vector<LivesOfTrace>> of_hosts;
  for (std::size_t i = 0; i < merged_.size(); i++)
    of_hosts[merged_[i].number].push_back({i, merged_[i].offset_ns, &surveyed_[i].lives});
  for (const auto& [number, traces] : of_hosts)
    if (auto twice = find_twice(traces))
      return Error{fmt::format("process {} of {} is in {} and in {} at the same time", twice->pid,
                               merged_[twice->first].host, name_of(surveyed_[twice->first]),
                               name_of(surveyed_[twice->second])),
                   "leave one of the two out: what it did would be counted twice",
                   exit_code::USAGE};
  return ok();
}

Result<> Merger::open_sources() {
  for (std::size_t i = 0; i < merged_.size(); i++) {
    std::string host = hosts_of(merged_).size() > 1 ? merged_[i].host : "";
    MovedLines::To to{
        std::move(host), {merged_[i].number}, merged_[i].offset_ns, i, merged_.size()};
    auto& source = sources_.emplace_back(std::make_unique<Source>(i, std::move(to), given_));
    source->reader = TRY(analyze::TraceReader::open(surveyed_[i].files));
    source->reader->derive_nothing();
    TRY(advance(*source));
  }
  return ok();
}

namespace {

// The earlier comes first; at the same time, the one whose trace was given first.
constexpr auto LATER = [](const auto* a, const auto* b) {
  return std::pair(a->time, a->index) > std::pair(b->time, b->index);
};

}  // namespace

// To its next line that belongs into the merge; puts it among those that have one.
Result<> Merger::advance(Source& source) {
  for (;;) {
    source.line = TRY(source.reader->next());
    // One that is still recorded may have grown.
    std::uint64_t read = source.reader->facts().lines,
                  surveyed = surveyed_[source.index].facts.lines;
    if (!source.line && read < surveyed)
      return Error{name_of(surveyed_[source.index]) + " changed while it was merged"};
    if (!source.line || read > surveyed) return ok();
    const Line& line = *source.line;
    if (line.kind != LineKind::header && line.kind != LineKind::end && source.moved.admits(line) &&
        !machine_lines_.have(line, source.reader->facts().header, source.index))
      break;
  }
  source.time = std::max(source.time, source.line->end() + merged_[source.index].offset_ns);
  by_time_.push_back(&source);
  std::push_heap(by_time_.begin(), by_time_.end(), LATER);
  return ok();
}

Result<bool> Merger::next(std::string& lines) {
  if (ended_) return false;
  if (!begun_) lines += merged_header(surveyed_, merged_);
  lines_ += !begun_;
  begun_ = true;
  while (!by_time_.empty() && lines.size() < MANY_BYTES) {
    std::pop_heap(by_time_.begin(), by_time_.end(), LATER);
    Source& source = *by_time_.back();
    by_time_.pop_back();
    source.moved.append(*source.line, lines);
    lines_++;
    TRY(advance(source));
  }
  if (!by_time_.empty()) return true;
  lines += merged_end(surveyed_, merged_, ++lines_);
  ended_ = true;
  return true;
}

}  // namespace cudabpf::merge
