#include "correlate/learners/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

namespace cudabpf {

namespace {

void take_payload(const abi::cb_range& record, NamedRange& range) {
  auto low = static_cast<std::uint32_t>(record.payload);
  auto take = [&](NamedRange::Payload is, auto value) {
    range.payload_is = is;
    range.payload = std::bit_cast<std::uint64_t>(value);
  };
  switch (record.payload_type) {
    case abi::CB_PAYLOAD_UNSIGNED_64:
      return take(NamedRange::Payload::whole, std::uint64_t{record.payload});
    case abi::CB_PAYLOAD_SIGNED_64:
      return take(NamedRange::Payload::signed_whole, std::uint64_t{record.payload});
    case abi::CB_PAYLOAD_DOUBLE:
      return take(NamedRange::Payload::real, std::uint64_t{record.payload});
    case abi::CB_PAYLOAD_UNSIGNED_32:
      return take(NamedRange::Payload::whole, std::uint64_t{low});
    case abi::CB_PAYLOAD_SIGNED_32:
      return take(NamedRange::Payload::signed_whole, std::int64_t{static_cast<std::int32_t>(low)});
    case abi::CB_PAYLOAD_FLOAT:
      return take(NamedRange::Payload::real, double{std::bit_cast<float>(low)});
    default:
      return;
  }
}

}  // namespace

void Ranges::on_record(const Record& record) {
  OfProcess& process = processes_[record.head->pid];
  switch (record.head->function) {
    case abi::CB_RANGE_PUSH:
      return push(record, process);
    case abi::CB_RANGE_POP:
      return pop(record, process);
    case abi::CB_RANGE_START:
      if (has_room(process.started, MAX_STARTED))
        process.started.push_back(opened(record, process, Op::start));
      return;
    case abi::CB_RANGE_END:
      return end(record, process);
    case abi::CB_RANGE_MARK:
      trace_.sink().range(opened(record, process, Op::mark).range);
      open_--;
      return;
    case abi::CB_RANGE_DOMAIN:
      if (record.range->domain < CB_RANGE_DOMAINS)
        process.domains[record.range->domain] = record.text;
      return;
    case abi::CB_RANGE_CATEGORY:
      return name_category(record, process);
  }
}

void Ranges::name_category(const Record& record, OfProcess& process) {
  constexpr std::size_t MAX = 1024;
  if (process.categories.size() >= MAX) return;
  process.categories[{record.range->domain, record.range->category}] = record.text;
}

Ranges::Path Ranges::innermost(ThreadId thread) const {
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return nullptr;
  const OfProcess& of = process->second;
  auto pushed = of.pushed.find(thread.tid);
  const Open* last = of.started.empty() ? nullptr : &of.started.back();
  // Where there was no room for a name, the ranges around it still say where the call is.
  if (pushed != of.pushed.end())
    for (auto one = pushed->second.rbegin(); one != pushed->second.rend(); one++) {
      if (!one->range.path) continue;
      if (!last || !last->range.path || one->at >= last->at) last = &*one;
      break;
    }
  return last ? last->range.path : nullptr;
}

bool Ranges::has_room(const std::vector<Open>& opens, std::size_t most) {
  if (opens.size() < most && bounds_.has_memory(Kept::ranges, open_)) return true;
  bounds_.left_out(Kept::ranges);
  return false;
}

Ranges::Open Ranges::opened(const Record& record, const OfProcess& process, Op op) {
  const abi::cb_head& head = *record.head;
  const abi::cb_range& said = *record.range;
  Open open;
  open.at = head.ts;
  open.number = said.number;
  open.domain = said.domain;
  open.level = said.level;
  open.drops = head.drops;
  NamedRange& range = open.range;
  range.op = op;
  range.name_known = !(head.flags & abi::CB_READ_FAULT);
  range.name = range.name_known ? record.text : "(unknown)";
  range.name_cut = head.flags & abi::CB_STRING_CUT;
  auto domain = process.domains.find(said.domain);
  if (domain != process.domains.end())
    range.domain = domain->second;
  else if (said.domain)
    range.domain = "(unknown)";
  if (said.category) {
    auto named = process.categories.find({said.domain, said.category});
    range.category =
        named != process.categories.end() ? named->second : fmt::format("{}", said.category);
  }
  range.ts = trace_.ts_of(head.ts);
  range.pid = head.pid;
  range.tid = head.tid;
  range.color = said.color;
  take_payload(said, range);
  Path around = innermost({head.pid, head.tid});
  range.path = op == Op::mark ? around : path_for(range, around);
  open_++;
  return open;
}

// A program may make names without end, "step 4711". Those in which nothing is are forgotten then;
// the same name gets another number when it comes again.
Ranges::Path Ranges::path_for(const NamedRange& range, Path around) {
  Place place{around ? around->number : 0, range.name, range.domain};
  auto known = paths_.find(place);
  if (known != paths_.end()) return known->second;
  if (!make_room_for_path()) return nullptr;
  auto path = std::make_shared<RangePath>();
  path->number = next_path_++;
  path->around = std::move(around);
  path->name = range.name;
  path->domain = range.domain;
  paths_.emplace(std::move(place), path);
  return path;
}

bool Ranges::make_room_for_path() {
  // A program that has all of them in use must not have them looked through for each name.
  constexpr std::size_t PATIENCE = 1024;
  if (bounds_.has_memory(Kept::ranges, paths_.size())) return true;
  if (refused_ % PATIENCE == 0)
    std::erase_if(paths_, [](const auto& one) { return one.second.use_count() == 1; });
  if (bounds_.has_memory(Kept::ranges, paths_.size())) {
    refused_ = 0;
    return true;
  }
  refused_++;
  bounds_.left_out(Kept::ranges);
  return false;
}

void Ranges::push(const Record& record, OfProcess& process) {
  auto& pushed = process.pushed[record.head->tid];
  const abi::cb_range& said = *record.range;
  if (said.level != CB_NO_LEVEL) close_from(pushed, said.domain, said.level);
  if (has_room(pushed, MAX_PUSHED)) pushed.push_back(opened(record, process, Op::push));
}

void Ranges::pop(const Record& record, OfProcess& process) {
  auto thread = process.pushed.find(record.head->tid);
  if (thread == process.pushed.end()) return;
  auto& pushed = thread->second;
  const abi::cb_range& said = *record.range;
  bool knows = said.level != CB_NO_LEVEL;
  if (knows) close_from(pushed, said.domain, said.level + 1U);
  auto last = std::find_if(pushed.rbegin(), pushed.rend(),
                           [&](const Open& open) { return open.domain == said.domain; });
  if (last == pushed.rend() || (knows && last->level != said.level)) return;
  bool seen = knows || last->drops == record.head->drops;
  close(*last, seen ? Ending::ended : Ending::end_lost, record.head->ts);
  pushed.erase(std::next(last).base());
  if (pushed.empty()) process.pushed.erase(thread);
}

void Ranges::end(const Record& record, OfProcess& process) {
  auto& started = process.started;
  auto one = std::find_if(started.rbegin(), started.rend(),
                          [&](const Open& open) { return open.number == record.range->number; });
  if (one == started.rend()) return;
  close(*one, Ending::ended, record.head->ts);
  started.erase(std::next(one).base());
}

void Ranges::close_from(std::vector<Open>& pushed, std::uint32_t domain, std::uint32_t level) {
  std::erase_if(pushed, [&](Open& open) {
    bool over = open.domain == domain && open.level != CB_NO_LEVEL && open.level >= level;
    if (over) close(open, Ending::end_lost);
    return over;
  });
}

void Ranges::close(Open& open, Ending ending, std::uint64_t at) {
  open.range.has_end = ending == Ending::ended;
  open.range.end_lost = ending == Ending::end_lost;
  open.range.unfinished = ending == Ending::unfinished;
  if (open.range.has_end) open.range.duration = at > open.at ? at - open.at : 0;
  trace_.sink().range(open.range);
  open_--;
}

// The innermost first, as their lines come otherwise.
void Ranges::close_all(std::vector<Open>& opens) {
  for (; !opens.empty(); opens.pop_back()) close(opens.back(), Ending::unfinished);
}

void Ranges::thread_gone(ThreadId thread) {
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return;
  auto of = process->second.pushed.find(thread.tid);
  if (of == process->second.pushed.end()) return;
  close_all(of->second);
  process->second.pushed.erase(of);
}

void Ranges::process_gone(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  for (auto& [tid, pushed] : process->second.pushed) close_all(pushed);
  close_all(process->second.started);
  processes_.erase(process);
}

void Ranges::finished() {
  std::vector<std::uint32_t> pids;
  for (const auto& [pid, process] : processes_) pids.push_back(pid);
  std::sort(pids.begin(), pids.end());  // a hash table's order is by chance
  for (std::uint32_t pid : pids) process_gone(pid);
}

}  // namespace cudabpf
