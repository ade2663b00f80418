#include "sink/triggers.hpp"

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
  return on_error || on_xid || idle_ns ||
         std::any_of(longest_ns.begin(), longest_ns.end(), [](std::uint64_t ns) { return ns; });
}

std::string Triggers::call(const Call& call) {
  if (rules_.idle_ns && call.function->meaning.work == Work::launch) launched(call.pid, call.ts);
  if (rules_.on_error && is_failure(call)) return TriggerRules::ERROR;
  CallClass which = class_of(*call.function);
  std::uint64_t longest = rules_.longest_ns[static_cast<std::size_t>(which)];
  if (longest && call.has_return && call.duration > longest) return std::string(to_string(which));
  return {};
}

std::string Triggers::gpu_error() const {
  return rules_.on_error ? TriggerRules::ERROR : rules_.on_xid ? TriggerRules::XID : "";
}

std::string Triggers::process(const Process& process) {
  if (process.op == Process::Op::exit || process.op == Process::Op::exec)
    launches_.erase(process.pid);
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

std::string Triggers::time_passed(std::uint64_t now) {
  std::string why;
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
