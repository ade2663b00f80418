#include "serve/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "util/system/clock.hpp"

namespace cudabpf::serve {

namespace {

constexpr int READ = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW;
// Opening a pipe or a device must not wait for anybody.
constexpr int READ_FILE = READ | O_NONBLOCK, READ_FOLDER = READ | O_DIRECTORY;

Fd open_by_openat2(int folder, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how))));
}

Fd open_by_parts(int folder, const std::string& path, int flags) {
  std::size_t slash = path.find('/');
  if (slash == std::string::npos) return Fd(::openat(folder, path.c_str(), flags));
  Fd below(::openat(folder, path.substr(0, slash).c_str(), READ_FOLDER));
  return below ? open_by_parts(below.get(), path.substr(slash + 1), flags) : Fd();
}

bool leads_elsewhere(const std::string& path) {
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find('/', at), path.size());
    std::string_view part = std::string_view(path).substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return true;
    at = end + 1;
  }
  return path.find('\0') != std::string::npos;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// "t.*.jsonl" for the part "t.0002.jsonl" of a rotated trace, or "t.10000.jsonl"; else the name
// itself.
std::string name_of_all_parts(const std::string& name) {
  constexpr std::size_t FEWEST_DIGITS = 4;
  std::size_t ending = name.rfind(".jsonl");
  if (ending == std::string::npos || ending == 0) return name;
  std::size_t dot = name.rfind('.', ending - 1);
  if (dot == std::string::npos || dot == 0) return name;
  std::size_t digits = ending - dot - 1;
  bool is_number = name.find_first_not_of("0123456789", dot + 1) == ending;
  bool is_part =
      is_number && (digits == FEWEST_DIGITS || (digits > FEWEST_DIGITS && name[dot + 1] != '0'));
  return is_part ? name.substr(0, dot) + ".*" + name.substr(ending) : name;
}

struct Entry {
  std::string name, all_parts;  // name_of_all_parts(name)
  bool is_folder = false;
  Stamp stamp;
};

// The parts of a rotated trace stand together, in the order of their numbers.
bool comes_before(const Entry& a, const Entry& b) {
  auto key = [](const Entry& entry) {
    return std::tuple(std::string_view(entry.all_parts), entry.name.size(),
                      std::string_view(entry.name));
  };
  return key(a) < key(b);
}

// Files that may be traces, and folders. Hidden ones are nobody's traces.
// `seen`: of all folders.
std::vector<Entry> entries_of(Fd folder, std::size_t& seen, std::uint64_t& left_out) {
  std::vector<Entry> entries;
  std::unique_ptr<DIR, CloseFolder> open(::fdopendir(folder.get()));
  if (!open) return entries;
  int fd = folder.release();
  while (const dirent* entry = ::readdir(open.get())) {
    std::string name = entry->d_name;
    if (name.starts_with('.')) continue;
    if (seen >= Folder::MAX_ENTRIES) {
      left_out++;
      break;
    }
    seen++;
    struct stat status {};
    if (::fstatat(fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    bool is_folder = S_ISDIR(status.st_mode);
    if (is_folder || (S_ISREG(status.st_mode) && is_trace_name(name)))
      entries.push_back({name, name_of_all_parts(name), is_folder, Stamp::of(status)});
  }
  std::sort(entries.begin(), entries.end(), comes_before);
  return entries;
}

void add_traces(Contents& contents, const std::string& below, const std::vector<Entry>& entries) {
  std::map<std::string, std::size_t> rotated;  // places in contents.traces
  for (const Entry& entry : entries) {
    if (entry.is_folder) continue;
    std::string file = below + entry.name;
    bool is_part = entry.all_parts != entry.name;
    auto known = is_part ? rotated.find(entry.all_parts) : rotated.end();
    if (known != rotated.end()) {
      contents.traces[known->second].files.push_back(file);
      contents.traces[known->second].stamps.push_back(entry.stamp);
    } else if (contents.traces.size() >= Folder::MAX_TRACES) {
      contents.left_out++;
    } else {
      if (is_part) rotated[entry.all_parts] = contents.traces.size();
      contents.traces.push_back({file, {file}, {entry.stamp}});
    }
  }
}

}  // namespace

Stamp Stamp::of(const struct stat& file) {
  constexpr std::uint64_t SECOND = 1'000'000'000;
  return {static_cast<std::uint64_t>(file.st_dev), static_cast<std::uint64_t>(file.st_ino),
          static_cast<std::uint64_t>(file.st_size),
          static_cast<std::uint64_t>(file.st_mtim.tv_sec) * SECOND +
              static_cast<std::uint64_t>(file.st_mtim.tv_nsec)};
}

std::uint64_t FoundTrace::size() const {
  std::uint64_t size = 0;
  for (const Stamp& stamp : stamps) size += stamp.size;
  return size;
}

bool FoundTrace::was_just_written() const {
  // A capture writes what it has each tenth of a second, and its program may do nothing for a
  // while.
  constexpr std::uint64_t STILL_RUNNING_NS = 60'000'000'000;
  std::uint64_t now = now_ns(CLOCK_REALTIME), then = modified();
  return then > now || now - then < STILL_RUNNING_NS;
}

std::uint64_t FoundTrace::modified() const {
  std::uint64_t latest = 0;
  for (const Stamp& stamp : stamps) latest = std::max(latest, stamp.modified);
  return latest;
}

bool is_trace_name(std::string_view name) {
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.zst");
}

Result<Folder> Folder::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd)
    return errno_error(path,
                       errno == ENOTDIR ? "give the folder that holds the traces" : std::string());
  Folder folder(std::move(fd));
  // Whether the kernel has it, and lets this process have it, is found out by trying.
  if (!open_by_openat2(folder.fd_.get(), ".", READ_FOLDER) && (errno == ENOSYS || errno == EPERM))
    folder.by_ = By::parts;
  return folder;
}

Fd Folder::open_below(const std::string& path, int flags) const {
  return by_ == By::openat2 ? open_by_openat2(fd_.get(), path, flags)
                            : open_by_parts(fd_.get(), path, flags);
}

Result<Contents> Folder::contents() const {
  Contents contents;
  Fd top(::openat(fd_.get(), ".", READ_FOLDER));
  if (!top) return errno_error("the folder");
  std::size_t seen = 0;
  auto entries = entries_of(std::move(top), seen, contents.left_out);
  add_traces(contents, "", entries);
  for (const Entry& entry : entries) {
    if (!entry.is_folder) continue;
    if (seen >= MAX_ENTRIES) {
      contents.left_out++;
      continue;
    }
    Fd below = open_below(entry.name, READ_FOLDER);
    if (below)
      add_traces(contents, entry.name + "/", entries_of(std::move(below), seen, contents.left_out));
    else
      contents.unread.push_back(entry.name);
  }
  return contents;
}

Result<Fd> Folder::open_file(const std::string& file) const {
  if (leads_elsewhere(file)) return Error{file + " is not a file of the folder", {}};
  Fd fd = open_below(file, READ_FILE);
  if (!fd) return errno_error(file);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(file);
  if (!S_ISREG(status.st_mode)) return Error{file + " is not a regular file", {}};
  return fd;
}

}  // namespace cudabpf::serve
