#include "sink/hangs/hang_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "util/console/terminal.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::hangs {

namespace {

using Json = nlohmann::ordered_json;

const Doing* doing_of(const Hang& hang, std::uint32_t pid) {
  auto at = std::find_if(hang.processes.begin(), hang.processes.end(),
                         [&](const Doing& one) { return one.pid == pid; });
  return at == hang.processes.end() ? nullptr : &*at;
}

std::string name_of(const RankState& member, const Stuck& stuck) {
  if (!member.rank) return fmt::format("process {}", member.pid);
  if (!stuck.ranks) return fmt::format("rank {}", *member.rank);
  return fmt::format("rank {} of {}", *member.rank, *stuck.ranks);
}

std::string names_of_named(const Stuck& stuck) {
  std::string names;
  std::size_t count = 0;
  constexpr std::size_t MAX = 8;
  for (const RankState& member : stuck.members) {
    if (!member.named || count++ >= MAX) continue;
    names += (names.empty() ? "" : ", ") + (count == 1    ? name_of(member, stuck)
                                            : member.rank ? std::to_string(*member.rank)
                                                          : std::to_string(member.pid));
  }
  if (count > MAX) names += fmt::format(" and {} more", count - MAX);
  return names;
}

// "all_reduce 57"
std::string collective(const Stuck& stuck) {
  for (const RankState& member : stuck.members)
    if (member.at && member.at->sequence == stuck.sequence)
      return fmt::format("{} {}", to_string(member.at->op), stuck.sequence);
  return fmt::format("collective {}", stuck.sequence);
}

std::string ending_of(const Doing& doing) {
  if (doing.signal) return fmt::format("killed by signal {}", *doing.signal);
  if (doing.exit_code) return fmt::format("ended with status {}", *doing.exit_code);
  return "ended";
}

const RankState* first_named(const Stuck& stuck) {
  auto at = std::find_if(stuck.members.begin(), stuck.members.end(),
                         [](const RankState& member) { return member.named; });
  return at == stuck.members.end() ? nullptr : &*at;
}

bool are_many(const Stuck& stuck) {
  return std::count_if(stuck.members.begin(), stuck.members.end(),
                       [](const RankState& member) { return member.named; }) > 1;
}

// "has not entered all_reduce 57"
std::string lacking(const Stuck& stuck) {
  const char* has = are_many(stuck) ? "have" : "has";
  if (stuck.in_graphs)
    return fmt::format("{} not launched a graph of collectives that others have", has);
  return fmt::format("{} not entered {}", has, collective(stuck));
}

const char* why_unknown(const Stuck& stuck) {
  return stuck.graphs_unknown ? "what was in the graphs that were launched is not known"
                              : "not all calls of the communicator were recorded";
}

// "all_reduce 57", or what was launched after that.
std::string entered_last(const Stuck& stuck) {
  std::uint64_t entered = 0, launched = 0;
  for (const RankState& member : stuck.members) {
    if (member.at) entered = std::max(entered, member.at->ts);
    launched = std::max(launched, member.replayed.ts);
  }
  return launched > entered ? "launched the same graphs of collectives, and the last does not end"
                            : "entered " + collective(stuck) + ", and it does not end";
}

std::string of_communicator(const Hang& hang, const Stuck& stuck) {
  std::string who = names_of_named(stuck), what = collective(stuck);
  const char* has = are_many(stuck) ? "have" : "has";
  switch (stuck.kind) {
    case Kind::gone: {
      const RankState* named = first_named(stuck);
      const Doing* doing = named ? doing_of(hang, named->pid) : nullptr;
      return fmt::format("{} {}: {}", who, lacking(stuck), doing ? ending_of(*doing) : "ended");
    }
    case Kind::stopped:
      return fmt::format("{} {}: stopped", who, lacking(stuck));
    case Kind::missing_enter:
      return fmt::format("{} {}", who, lacking(stuck));
    case Kind::mismatch:
      return fmt::format("{} called something else than others as collective {}", who,
                         stuck.sequence);
    case Kind::group_open:
      return fmt::format("{} {} entered {} in a group that is not ended", who, has, what);
    case Kind::making: {
      std::string absent = fmt::format("{}", fmt::join(stuck.absent, ", "));
      return fmt::format("{} come here to make a communicator of {}{}",
                         count_of(stuck.members.size(), "rank has", "ranks have"),
                         stuck.ranks.value_or(0),
                         absent.empty() ? "" : "; not, here: rank " + absent);
    }
    case Kind::missing_peer:
      return fmt::format("{} {} not called the other half of a send or recv", who, has);
    case Kind::unknown:
      return fmt::format(
          "nobody can be named: {}",
          hang.lost ? fmt::format("{} may be missing", count_of(hang.lost, "record", "records"))
                    : why_unknown(stuck));
    case Kind::all_entered:
    case Kind::waiting:
      break;
  }
  bool whole = stuck.ranks == static_cast<std::int32_t>(stuck.members.size());
  return fmt::format("{} {}", whole ? "all ranks have" : "the ranks recorded here have",
                     entered_last(stuck));
}

std::string since(std::uint64_t now, std::uint64_t ts) {
  return now > ts ? human_time(now - ts) : "0 ns";
}

// What a process does instead.
std::string doing_text(const Hang& hang, const Doing& doing) {
  if (doing.gone) return ending_of(doing);
  std::string text;
  if (doing.is_stopped()) text = "stopped; ";
  if (doing.open)
    text +=
        fmt::format("in {} for {}", doing.open->function->name, human_time(doing.open->open_ns));
  else
    text += fmt::format("in no call that waits; last call {} ago", since(hang.ts, doing.called_ts));
  if (!doing.kernel.empty())
    text += fmt::format("; last launch: {}, {} ago", printable(doing.kernel),
                        since(hang.ts, doing.launched_ts));
  return text;
}

std::string entered_text(const Hang& hang, const RankState& member) {
  if (!member.at) return "entered no collective";
  std::string text = fmt::format("entered {} {}", to_string(member.at->op), member.at->sequence);
  if (member.at->count) text += fmt::format(" of {} elements", *member.at->count);
  text += fmt::format(", {} ago", since(hang.ts, member.at->ts));
  const ranks::Replayed& replayed = member.replayed;
  if (replayed.launches)
    text += fmt::format(", and {} more in {}, the last {} ago", replayed.collectives,
                        count_of(replayed.launches, "launch of graphs", "launches of graphs"),
                        since(hang.ts, replayed.ts));
  return text;
}

double seconds_ago(const Hang& hang, std::uint64_t ts) {
  return static_cast<double>(hang.ts > ts ? hang.ts - ts : 0) / 1e9;
}

Json doing_json(const Hang& hang, const Doing& doing) {
  Json out = {{"pid", doing.pid}, {"name", printable(doing.name)}};
  if (doing.state) out["state"] = std::string(1, doing.state);
  if (doing.gone) out["gone"] = true;
  if (doing.exit_code) out["exit_code"] = *doing.exit_code;
  if (doing.signal) out["signal"] = *doing.signal;
  if (doing.open)
    out["open_call"] = {{"id", doing.open->id},
                        {"name", std::string(doing.open->function->name)},
                        {"tid", doing.open->tid},
                        {"open_s", static_cast<double>(doing.open->open_ns) / 1e9}};
  if (doing.called_ts) out["last_call_s_ago"] = seconds_ago(hang, doing.called_ts);
  if (doing.launched_ts)
    out["last_launch"] = {{"kernel", printable(doing.kernel)},
                          {"s_ago", seconds_ago(hang, doing.launched_ts)}};
  return out;
}

Json member_json(const Hang& hang, const RankState& member) {
  Json out = {{"pid", member.pid}};
  if (member.rank) out["rank"] = *member.rank;
  out["entered"] = member.sequence;
  if (member.at) {
    const Entered& at = *member.at;
    out["op"] = std::string(to_string(at.op));
    out["seq"] = at.sequence;
    out["call"] = at.call;
    if (at.count) out["count"] = *at.count;
    if (at.datatype) out["datatype"] = std::string(nccl_type_name(*at.datatype));
    if (at.root) out["root"] = *at.root;
    out["entered_s_ago"] = seconds_ago(hang, at.ts);
  }
  if (member.replayed.launches)
    out["graphs"] = {{"launches", member.replayed.launches},
                     {"collectives", member.replayed.collectives},
                     {"launched_s_ago", seconds_ago(hang, member.replayed.ts)}};
  if (member.named) out["named"] = std::string(to_string(member.why));
  return out;
}

}  // namespace

std::string headline(const Hang& hang) {
  std::string what = hang.communicators.empty()
                         ? "a call does not end, and no collective of NCCL was recorded"
                         : of_communicator(hang, hang.communicators.front());
  const Doing* longest = nullptr;
  for (const Doing& doing : hang.processes)
    if (doing.open && !doing.gone && (!longest || doing.open->open_ns > longest->open->open_ns))
      longest = &doing;
  if (!longest) return what;
  return fmt::format("{}; process {} is in {} for {}", what, longest->pid,
                     longest->open->function->name, human_time(longest->open->open_ns));
}

std::string as_text(const Hang& hang) {
  constexpr std::size_t MAX_COMMUNICATORS = 4, MAX_LINES = 16;
  std::string out = headline(hang) + "\n";
  std::size_t shown = 0;
  for (const Stuck& stuck : hang.communicators) {
    if (shown++ == MAX_COMMUNICATORS) break;
    if (hang.communicators.size() > 1 || shown > 1)
      out += fmt::format("  communicator {:#018x}: {}\n", stuck.identity,
                         of_communicator(hang, stuck));
    std::size_t lines = 0;
    for (const RankState& member : stuck.members) {
      if (lines++ == MAX_LINES) break;
      const Doing* doing = doing_of(hang, member.pid);
      out += fmt::format("  {} {} ({} {}): {}; {}\n", member.named ? "*" : " ",
                         name_of(member, stuck), doing ? printable(doing->name) : "", member.pid,
                         entered_text(hang, member), doing ? doing_text(hang, *doing) : "");
    }
    if (stuck.members.size() > MAX_LINES)
      out += fmt::format("    and {} more\n", stuck.members.size() - MAX_LINES);
    if (stuck.ranks && *stuck.ranks > static_cast<std::int32_t>(stuck.members.size()))
      out +=
          fmt::format("    {} more of its {} ranks are not recorded here\n",
                      *stuck.ranks - static_cast<std::int32_t>(stuck.members.size()), *stuck.ranks);
  }
  if (hang.communicators.empty())
    for (const Doing& doing : hang.processes)
      if (doing.open && shown++ < MAX_LINES)
        out += fmt::format("    {} {}: {}\n", printable(doing.name), doing.pid,
                           doing_text(hang, doing));
  return out;
}

std::string as_json(const Hang& hang, const std::string& host, std::uint64_t realtime_ns,
                    std::uint64_t overdue_ns) {
  Json out = {{"type", "hang"},
              {"host", host},
              {"realtime_ns", realtime_ns},
              {"ts", hang.ts},
              {"limit_s", static_cast<double>(overdue_ns) / 1e9},
              {"open_s", static_cast<double>(hang.longest_ns) / 1e9},
              {"kind", std::string(to_string(hang.kind))},
              {"says", headline(hang)},
              {"records_lost", hang.lost},
              {"communicators", Json::array()},
              {"processes", Json::array()}};
  for (const Stuck& stuck : hang.communicators) {
    Json one = {{"kind", std::string(to_string(stuck.kind))}, {"seq", stuck.sequence}};
    if (stuck.identity) one["identity"] = fmt::format("{:#018x}", stuck.identity);
    if (stuck.ranks) one["ranks"] = *stuck.ranks;
    one["recorded"] = stuck.members.size();
    if (stuck.in_graphs) one["in_graphs"] = true;
    if (!stuck.absent.empty()) one["absent"] = stuck.absent;
    one["members"] = Json::array();
    for (const RankState& member : stuck.members)
      one["members"].push_back(member_json(hang, member));
    out["communicators"].push_back(std::move(one));
  }
  for (const Doing& doing : hang.processes) out["processes"].push_back(doing_json(hang, doing));
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cudabpf::hangs
