// What /proc says about processes. Processes may die while they are read: whatever is missing stays
// empty, and nothing here fails.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/system/rank_variables.hpp"

namespace cudabpf {

// One line of /proc/PID/maps.
struct Mapping {
  std::uint64_t start = 0, end = 0;
  std::string perms;  // "r-xp"
  std::uint64_t offset = 0;
  std::uint32_t major = 0, minor = 0;
  std::uint64_t inode = 0;
  // Empty for anonymous memory; "[heap]", "[vdso]" and the like as they are. Without the "
  // (deleted)" of a file that has been unlinked.
  std::string path;

  bool executable() const { return perms.size() > 2 && perms[2] == 'x'; }
};
std::optional<Mapping> parse_mapping(std::string_view line);
std::vector<Mapping> parse_maps(std::string_view text);  // lines that do not parse are left out

struct ProcessIdentity {
  pid_t pid = 0;
  pid_t ppid = 0;
  std::string comm;
  std::vector<std::string> args;  // the first 16 KiB
  std::string exe;                // as the process's own mount namespace names it
  std::optional<uid_t> uid;       // the real one
  std::vector<pid_t> ns_pids;     // outermost pid namespace first; more than one in a container
  std::uint64_t start_ns =
      0;               // on CLOCK_BOOTTIME, to the clock tick (10 ms); distinguishes reused pids
  std::string cgroup;  // the text of /proc/PID/cgroup; see util/system/container.hpp
  RankVariables rank;  // of its environment; process() does not look there

  std::string cmdline() const;  // args joined with spaces
};

// The value of NAME in an environment; empty if it is not there.
std::string value_in(const std::vector<std::string>& environment, const std::string& name);

// A /proc, or a folder of the same shape (for tests).
class Procfs {
 public:
  explicit Procfs(std::string root = "/proc") : root_(std::move(root)) {}

  ProcessIdentity process(pid_t pid) const;
  bool exists(pid_t pid) const;
  bool is_ours() const;                                  // it numbers processes as this one does
  bool is_exiting(pid_t pid) const;                      // nothing of its program runs any more
  char state(pid_t pid) const;                           // 'R', 'S', 'D', 'T', …; 0: not known
  std::vector<pid_t> pids() const;                       // in ascending order, like all lists here
  std::vector<std::pair<pid_t, pid_t>> parents() const;  // each process and its parent
  std::vector<pid_t> ancestors(pid_t pid) const;  // the parent first, then its parent, up to init
  std::vector<pid_t> threads(pid_t pid) const;
  std::vector<Mapping> maps(pid_t pid) const;  // even if its main thread has ended
  // A thread's ids in its pid namespaces, the outermost first; none: there is no such thread.
  std::vector<pid_t> ns_tids(pid_t pid, pid_t tid) const;
  // The process that a thread belongs to, or a process itself; 0: there is none.
  pid_t process_of(pid_t tid) const;
  pid_t tracer(pid_t pid) const;                          // the debugger attached to it; 0: none
  std::vector<std::string> environment(pid_t pid) const;  // "NAME=value" each
  std::string mount_namespace(pid_t pid) const;           // "mnt:[4026531841]"

  // Processes with this name as their comm or as the last part of their exe or argv[0].
  std::vector<pid_t> find_by_name(std::string_view name) const;

  // "/proc/PID/NAME", to open: path(42, "root/usr/lib/libcuda.so.1").
  std::string path(pid_t pid, std::string_view name) const;
  // The same for the process that reads it: "/proc/self/NAME".
  std::string own_path(std::string_view name) const;

 private:
  pid_t status_pid(pid_t pid, std::string_view field) const;

  std::string root_;
};

}  // namespace cudabpf
