#include "util/system/procfs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <set>

#include "util/system/fd.hpp"
#include "util/whole_number.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_FILE = 64u << 20;  // the maps of a process with half a million mappings
constexpr std::size_t MAX_ARGUMENTS = 16u << 10;  // enough of a command line for any reader
constexpr std::size_t MAX_CGROUP = 64u << 10;
constexpr std::string_view DELETED = " (deleted)";

std::string read_file(const std::string& path, std::size_t most = MAX_FILE) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  char buffer[16384];
  ssize_t got;
  while (text.size() < most && (got = read(fd.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (text.size() > most) text.resize(most);
  return text;
}

std::string read_link(const std::string& path) {
  char target[PATH_MAX];
  ssize_t size = readlink(path.c_str(), target, sizeof target);
  return size < 0 ? std::string{} : std::string(target, static_cast<std::size_t>(size));
}

// Removes what precedes the separator (everything if there is none) from the text.
std::string_view take(std::string_view& text, char separator) {
  std::size_t end = std::min(text.find(separator), text.size());
  std::string_view field = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

std::vector<std::string> split_strings(std::string_view text) {
  std::vector<std::string> strings;
  while (!text.empty()) strings.emplace_back(take(text, '\0'));
  return strings;
}

// The value of "Name:\tvalue" in /proc/PID/status.
std::string_view status_field(std::string_view status, std::string_view name) {
  while (!status.empty()) {
    std::string_view line = take(status, '\n');
    if (!line.starts_with(name) || line.substr(name.size(), 2) != ":\t") continue;
    return line.substr(name.size() + 2);
  }
  return {};
}

struct Stat {
  std::string comm;
  char state = 0;
  pid_t ppid = 0;
  std::uint64_t flags = 0;
  std::uint64_t start_ticks = 0;
};

// "42 (comm) S 1 ...": comm may contain anything, so it ends at the last parenthesis.
Stat parse_stat(std::string_view text) {
  Stat stat;
  std::size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  take(rest, ' ');
  for (int field = 3; !rest.empty(); field++) {  // as proc(5) counts them
    std::string_view value = take(rest, ' ');
    if (field == 3 && !value.empty()) stat.state = value.front();
    if (field == 4) read_number(value, stat.ppid);
    if (field == 9) read_number(value, stat.flags);
    if (field == 22) read_number(value, stat.start_ticks);
  }
  return stat;
}

std::vector<pid_t> numbered_entries(const std::string& folder) {
  std::vector<pid_t> numbers;
  std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  if (!listing) return numbers;
  while (dirent* entry = readdir(listing.get())) {
    pid_t number = 0;
    if (read_number(entry->d_name, number) && number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The kernel writes a newline in a path as \012 and escapes nothing else: other backslashes stay.
std::string unescape_path(std::string_view path) {
  std::string plain;
  for (std::size_t at; (at = path.find("\\012")) != path.npos; path.remove_prefix(at + 4)) {
    plain.append(path.substr(0, at)) += '\n';
  }
  return plain.append(path);
}

void strip_deleted(std::string_view& path) {
  if (path.ends_with(DELETED)) path.remove_suffix(DELETED.size());
}

std::vector<pid_t> ns_ids(std::string_view status) {
  std::vector<pid_t> ids;
  for (std::string_view field = status_field(status, "NSpid"); !field.empty();) {
    pid_t id = 0;
    if (read_number(take(field, '\t'), id)) ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::optional<Mapping> parse_mapping(std::string_view line) {
  // "7f3c00000000-7f3c00021000 r-xp 00001000 fe:01 42    /usr/lib/libcuda.so.1 (deleted)"
  Mapping mapping;
  bool sound = read_number(take(line, '-'), mapping.start, 16);
  sound &= read_number(take(line, ' '), mapping.end, 16);
  mapping.perms = take(line, ' ');
  sound &= mapping.perms.size() == 4;
  sound &= read_number(take(line, ' '), mapping.offset, 16);
  sound &= read_number(take(line, ':'), mapping.major, 16);
  sound &= read_number(take(line, ' '), mapping.minor, 16);
  sound &= read_number(take(line, ' '), mapping.inode);
  if (!sound || mapping.end < mapping.start) return {};
  // The kernel pads with blanks before the path, which begins with '/' or '['.
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  strip_deleted(line);
  mapping.path = unescape_path(line);
  return mapping;
}

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    if (std::optional<Mapping> mapping = parse_mapping(take(text, '\n'))) {
      mappings.push_back(std::move(*mapping));
    }
  }
  return mappings;
}

std::string ProcessIdentity::cmdline() const { return fmt::format("{}", fmt::join(args, " ")); }

std::string Procfs::path(pid_t pid, std::string_view name) const {
  return fmt::format("{}/{}/{}", root_, pid, name);
}

std::string Procfs::own_path(std::string_view name) const {
  return fmt::format("{}/self/{}", root_, name);
}

ProcessIdentity Procfs::process(pid_t pid) const {
  ProcessIdentity process;
  process.pid = pid;
  Stat stat = parse_stat(read_file(path(pid, "stat")));
  process.ppid = stat.ppid;
  process.comm = std::move(stat.comm);
  static const auto ticks_per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  process.start_ns = stat.start_ticks * (1'000'000'000 / ticks_per_second);

  process.args = split_strings(read_file(path(pid, "cmdline"), MAX_ARGUMENTS));
  std::string exe = read_link(path(pid, "exe"));
  std::string_view exe_path = exe;
  strip_deleted(exe_path);
  process.exe = exe_path;

  std::string status = read_file(path(pid, "status"));
  std::string_view uids = status_field(status, "Uid");
  uid_t uid = 0;
  if (read_number(take(uids, '\t'), uid)) process.uid = uid;
  process.ns_pids = ns_ids(status);

  process.cgroup = read_file(path(pid, "cgroup"), MAX_CGROUP);
  return process;
}

bool Procfs::exists(pid_t pid) const { return access(path(pid, "stat").c_str(), F_OK) == 0; }

bool Procfs::is_ours() const {
  char name[16] = {};
  ssize_t size = readlink((root_ + "/self").c_str(), name, sizeof(name) - 1);
  return size > 0 && std::string_view(name) == std::to_string(getpid());
}

bool Procfs::is_exiting(pid_t pid) const {
  constexpr std::uint64_t PF_EXITING = 4;  // <linux/sched.h>
  return parse_stat(read_file(path(pid, "stat"))).flags & PF_EXITING;
}

char Procfs::state(pid_t pid) const { return parse_stat(read_file(path(pid, "stat"))).state; }

std::vector<pid_t> Procfs::pids() const { return numbered_entries(root_); }

std::vector<pid_t> Procfs::threads(pid_t pid) const { return numbered_entries(path(pid, "task")); }

std::vector<pid_t> Procfs::ns_tids(pid_t pid, pid_t tid) const {
  return ns_ids(read_file(path(pid, fmt::format("task/{}/status", tid))));
}

std::vector<std::pair<pid_t, pid_t>> Procfs::parents() const {
  // task/TID/children is faster, but not every kernel has it, and it lists one thread's children.
  std::vector<std::pair<pid_t, pid_t>> found;
  for (pid_t pid : pids()) found.emplace_back(pid, parse_stat(read_file(path(pid, "stat"))).ppid);
  return found;
}

std::vector<pid_t> Procfs::ancestors(pid_t pid) const {
  std::vector<pid_t> found;
  std::set<pid_t> seen = {pid};  // pids reused during the walk could form a cycle
  while ((pid = parse_stat(read_file(path(pid, "stat"))).ppid) > 0 && seen.insert(pid).second) {
    found.push_back(pid);
  }
  return found;
}

std::vector<Mapping> Procfs::maps(pid_t pid) const {
  auto mappings = parse_maps(read_file(path(pid, "maps")));
  if (!mappings.empty()) return mappings;
  // A main thread that has ended shows no memory; the threads that still run show all of it.
  for (pid_t tid : threads(pid)) {
    if (tid == pid) continue;
    mappings = parse_maps(read_file(path(pid, fmt::format("task/{}/maps", tid))));
    if (!mappings.empty()) break;
  }
  return mappings;
}

pid_t Procfs::process_of(pid_t tid) const { return status_pid(tid, "Tgid"); }

pid_t Procfs::tracer(pid_t pid) const { return status_pid(pid, "TracerPid"); }

pid_t Procfs::status_pid(pid_t pid, std::string_view field) const {
  std::string status = read_file(path(pid, "status"));
  pid_t value = 0;
  read_number(status_field(status, field), value);
  return value;
}

std::vector<std::string> Procfs::environment(pid_t pid) const {
  return split_strings(read_file(path(pid, "environ")));
}

std::string Procfs::mount_namespace(pid_t pid) const { return read_link(path(pid, "ns/mnt")); }

std::string value_in(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& variable : environment)
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  return {};
}

std::vector<pid_t> Procfs::find_by_name(std::string_view name) const {
  std::vector<pid_t> found;
  if (name.empty()) return found;
  for (pid_t pid : pids()) {
    std::string exe = read_link(path(pid, "exe"));
    std::string_view exe_path = exe;
    strip_deleted(exe_path);
    std::string cmdline = read_file(path(pid, "cmdline"), MAX_ARGUMENTS);
    std::string_view args = cmdline;
    if (parse_stat(read_file(path(pid, "stat"))).comm == name || base_name(exe_path) == name ||
        base_name(take(args, '\0')) == name) {
      found.push_back(pid);
    }
  }
  return found;
}

}  // namespace cudabpf
