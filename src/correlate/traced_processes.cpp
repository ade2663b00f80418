#include "correlate/traced_processes.hpp"

#include <sys/wait.h>

#include <algorithm>

#include "util/system/container.hpp"

namespace cudabpf {

namespace {

std::string cmdline_of(const abi::cb_process& record) {
  std::string line(record.cmdline, std::min<std::size_t>(record.cmdline_size, CB_CMDLINE));
  while (!line.empty() && line.back() == '\0') line.pop_back();
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

void fill_from_record(const abi::cb_process& record, Process& process) {
  process.ppid = record.ppid;
  process.uid = record.uid;
  process.comm = fixed_text(record.comm);
  process.cmdline = cmdline_of(record);
  if (record.ns_pid != record.head.pid) process.ns_pid = record.ns_pid;
  process.cgroup = fixed_text(record.cgroup_name);
}

// /proc gives start times only to the clock tick. 0: not known.
bool may_be_same_start(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t TICK = 10'000'000;
  return a == 0 || b == 0 || a / TICK == b / TICK;
}

// /proc knows more than the record (the whole command line, the whole cgroup path), but the record
// was made at the time.
void fill_from_proc(const ProcessIdentity& identity, Process& process) {
  if (!identity.pid) return;
  if (!process.ppid) process.ppid = static_cast<std::uint32_t>(identity.ppid);
  bool same_program = process.comm.empty() || process.comm == identity.comm;
  if (process.comm.empty()) process.comm = identity.comm;
  if (same_program) {
    if (process.cmdline.empty() || process.cmdline.size() + 1 >= CB_CMDLINE)
      process.cmdline = identity.cmdline();
    process.exe = identity.exe;
    process.rank = identity.rank;
  }
  if (identity.uid && !process.uid.value_or(0)) process.uid = *identity.uid;
  if (identity.ns_pids.size() > 1)
    process.ns_pid = static_cast<std::uint32_t>(identity.ns_pids.back());
  if (!identity.cgroup.empty()) process.cgroup = cgroup_path(identity.cgroup);
}

}  // namespace

bool TracedProcesses::is_repeated(const Record& record) const {
  const abi::cb_process& process = *record.process;
  std::uint32_t pid = record.head->pid;
  if (record.head->kind == abi::CB_START) {
    auto began = known_.find(pid);
    return began != known_.end() && may_be_same_start(began->second, process.start_time);
  }
  return record.head->kind == abi::CB_EXIT && !known(pid) && pid == last_gone_ &&
         process.start_time == last_gone_began_;
}

void TracedProcesses::on_record(const Record& record, std::uint64_t ts) {
  std::uint32_t pid = record.head->pid;
  switch (record.head->kind) {
    case abi::CB_START:
      emit(Process::Op::start, pid, ts, record.process);
      break;
    case abi::CB_FORK:
      emit(Process::Op::fork, pid, ts, record.process);
      break;
    case abi::CB_EXEC:
      // The command of `run` is first seen when it execs in cudabpf's own child.
      emit(known(pid) ? Process::Op::exec : Process::Op::start, pid, ts, record.process);
      break;
    case abi::CB_EXIT:
      emit(Process::Op::exit, pid, ts, record.process);
      known_.erase(pid);
      last_gone_ = pid;
      last_gone_began_ = record.process->start_time;
      break;
  }
}

std::vector<std::uint32_t> TracedProcesses::pids() const {
  std::vector<std::uint32_t> pids;
  for (const auto& [pid, began] : known_) pids.push_back(pid);
  return pids;
}

void TracedProcesses::announce(std::uint32_t pid, std::uint64_t ts) {
  if (!known(pid)) emit(Process::Op::start, pid, ts, nullptr);
}

void TracedProcesses::emit(Process::Op op, std::uint32_t pid, std::uint64_t ts,
                           const abi::cb_process* record) {
  begun_ += op == Process::Op::start || op == Process::Op::fork;
  Process process;
  process.op = op;
  process.ts = ts;
  process.pid = pid;
  if (record) fill_from_record(*record, process);
  if (record && op == Process::Op::exit) {
    process.cgroup.clear();  // a dying process may have left its cgroup already
    int status = record->head.result;
    bool known = !(record->head.flags & abi::CB_STATUS_UNSEEN);
    if (known && WIFSIGNALED(status)) process.signal = WTERMSIG(status);
    if (known && !WIFSIGNALED(status)) process.exit_code = WEXITSTATUS(status);
  } else {
    ProcessIdentity identity = lookup_(pid);
    if (record && !may_be_same_start(identity.start_ns, record->start_time))
      identity = {};  // of a later process with the same pid
    known_[pid] = record ? record->start_time : identity.start_ns;
    fill_from_proc(identity, process);
    ContainerIdentity container =
        identify_container(identity.cgroup.empty() ? process.cgroup : identity.cgroup);
    process.container_runtime = std::move(container.runtime);
    process.container_id = std::move(container.id);
    process.pod = std::move(container.pod);
    process.unit = std::move(container.unit);
  }
  sink_.process(process);
}

}  // namespace cudabpf
