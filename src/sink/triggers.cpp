#include "sink/triggers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "state/error_meanings.hpp"
#include "util/limited.hpp"

namespace cudabpf {

namespace {

bool is_failure(const Call& call) {
  if (!(call.has_return || call.entry_lost) || !call.function->is_failure(call.result))
    return false;
  return !is_usual(call.function->name, call.function->result_name(call.result));
}

// A process that is ended by one of these signals was ended on purpose.
bool is_crash(const Process& process) {
  constexpr std::array WANTED{SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  return process.op == Process::Op::exit && process.signal &&
         std::find(WANTED.begin(), WANTED.end(), *process.signal) == WANTED.end();
}

}  // namespace

bool TriggerRules::any() const {
  return on_error || on_xid || idle_ns || behind_ns || limit_calls() || !slow_shares.empty();
}

bool TriggerRules::limit_calls() const {
  return std::any_of(longest_ns.begin(), longest_ns.end(), [](std::uint64_t ns) { return ns; });
}

std::string Triggers::call(const Call& call) {
  if (rules_.idle_ns && call.function->meaning.work == Work::launch) launched(call.pid, call.ts);
  if (rules_.behind_ns && ranks::Positions::concerns(*call.function)) positions_.note(call, false);
  if (call.has_return) ended(call);
  bool is_known = written_.erase(call.id) != 0;
  if (rules_.on_error && is_failure(call)) return TriggerRules::ERROR;
  if (is_known || !call.has_return || !takes_too_long(*call.function, call.duration)) return {};
  return std::string(to_string(class_of(*call.function)));
}

std::string Triggers::open_call(const Call& call, std::uint64_t open_ns) const {
  if (!takes_too_long(*call.function, open_ns) || written_.contains(call.id)) return {};
  return std::string(to_string(class_of(*call.function)));
}

void Triggers::written(const Call& call, std::uint64_t open_ns) {
  if (takes_too_long(*call.function, open_ns) && has_room_for(written_, call.id, MAX_OPEN_CALLS))
    written_.insert(call.id);
}

bool Triggers::takes_too_long(const Function& function, std::uint64_t ns) const {
  std::uint64_t longest = rules_.longest_ns[static_cast<std::size_t>(class_of(function))];
  return longest && ns > longest;
}

void Triggers::ended(const Call& call) {
  CallClass which = class_of(*call.function);
  for (std::size_t i = 0; i < rules_.slow_shares.size(); i++) {
    const TriggerRules::SlowShare& rule = rules_.slow_shares[i];
    if (rule.of != which || !has_room_for(shares_, call.pid, MAX_PROCESSES)) continue;
    std::vector<Share>& shares = shares_[call.pid];
    shares.resize(rules_.slow_shares.size());
    shares[i].calls++;
    shares[i].longer += call.duration > rule.longest_ns;
  }
}

std::string Triggers::gpu_error() const {
  return rules_.on_error ? TriggerRules::ERROR : rules_.on_xid ? TriggerRules::XID : "";
}

std::string Triggers::process(const Process& process) {
  if (process.op == Process::Op::exit || process.op == Process::Op::exec)
    launches_.erase(process.pid);
  if (process.op == Process::Op::exit) positions_.process_gone(process.pid);
  return rules_.on_error && is_crash(process) ? TriggerRules::ERROR : "";
}

void Triggers::launched(std::uint32_t pid, std::uint64_t at) {
  if (!has_room_for(launches_, pid, MAX_PROCESSES)) return;
  Launches& launches = launches_[pid];
  if (!launches.count) launches.since = at;
  if (at > launches.since && at - launches.since > rules_.idle_ns) {
    launches.before = launches.count;
    launches.count = 0;
    launches.since = at;
  }
  launches.count++;
  launches.last = std::max(launches.last, at);
  launches.reported = false;
}

// The first of the rules that some process's calls have broken in the window.
std::string Triggers::slow_share() const {
  for (std::size_t i = 0; i < rules_.slow_shares.size(); i++) {
    const TriggerRules::SlowShare& rule = rules_.slow_shares[i];
    for (const auto& [pid, shares] : shares_) {
      const auto& [calls, longer] = shares[i];
      std::uint64_t may_be_longer = calls * rule.most_longer;
      if (calls >= LEAST_IN_SHARE && may_be_longer >= TriggerRules::SHARES &&
          longer * TriggerRules::SHARES > may_be_longer)
        return fmt::format("{}.{}", to_string(rule.of), rule.quantile);
    }
  }
  return {};
}

// Once, until no rank is behind for so long.
bool Triggers::is_new_behind(std::uint64_t now) {
  if (!rules_.behind_ns) return false;
  std::vector<ranks::Positions::Behind> behind = positions_.behind();
  bool any = std::any_of(behind.begin(), behind.end(), [&](const auto& one) {
    return now > one.since && now - one.since > rules_.behind_ns;
  });
  bool is_new = any && !behind_reported_;
  behind_reported_ = any;
  return is_new;
}

std::string Triggers::time_passed(std::uint64_t now) {
  std::string why;
  if (is_new_behind(now)) why = TriggerRules::BEHIND;
  if (now >= window_ns_ + SHARE_WINDOW_NS) {
    why = slow_share();
    shares_.clear();
    window_ns_ = now;
  }
  for (auto& [pid, launches] : launches_) {
    bool was_busy = std::max(launches.count, launches.before) >= BUSY_LAUNCHES;
    if (launches.reported || !was_busy || now < launches.last ||
        now - launches.last <= rules_.idle_ns)
      continue;
    launches = {};
    launches.reported = true;
    why = TriggerRules::IDLE;
  }
  return why;
}

}  // namespace cudabpf
