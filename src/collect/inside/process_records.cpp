#include "collect/inside/process_records.hpp"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

// <linux/pidfd.h> of a kernel that has it (6.15 for the status); older headers do not.
struct PidfdInfo {
  std::uint64_t mask, cgroup_id;
  std::uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t WITH_EXIT = 1 << 3;
constexpr unsigned long GET_INFO = _IOWR(0xff, 11, PidfdInfo);

template <std::size_t SIZE>
void put_text(char (&field)[SIZE], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), SIZE));
}

}  // namespace

abi::cb_process process_record(abi::cb_kind kind, pid_t pid, std::uint64_t ts) {
  ProcessIdentity identity = Procfs().process(pid);
  abi::cb_process record{};
  record.head.ts = ts;
  record.head.pid = record.head.tid = static_cast<std::uint32_t>(pid);
  record.head.kind = static_cast<std::uint8_t>(kind);
  record.ppid = static_cast<std::uint32_t>(identity.ppid);
  record.uid = identity.uid.value_or(0);
  record.start_time = identity.start_ns;
  record.ns_pid = identity.ns_pids.empty() ? record.head.pid
                                           : static_cast<std::uint32_t>(identity.ns_pids.back());
  put_text(record.comm, identity.comm);
  std::string line;
  for (const std::string& argument : identity.args) line += argument + '\0';
  put_text(record.cmdline, line);
  record.cmdline_size = static_cast<std::uint32_t>(std::min<std::size_t>(line.size(), CB_CMDLINE));
  return record;
}

std::optional<int> exit_status(pid_t pid, int pidfd) {
  siginfo_t ended{};
  // The child stays a zombie, for its parent's wait().
  if (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 &&
      ended.si_pid == pid)
    return ended.si_code == CLD_EXITED ? W_EXITCODE(ended.si_status, 0)
                                       : W_EXITCODE(0, ended.si_status);
  PidfdInfo info{};
  info.mask = WITH_EXIT;
  if (pidfd >= 0 && ioctl(pidfd, GET_INFO, &info) == 0 && (info.mask & WITH_EXIT))
    return info.exit_code;
  return std::nullopt;
}

}  // namespace cudabpf
