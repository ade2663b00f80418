#include "trace/files/trace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "util/system/clock.hpp"
#include "util/whole_number.hpp"

namespace cudabpf {

namespace {

// "/dev/fd/63" -> 63. Opening the path would need rights to its target, which a user may lack (for
// another user's pipe), and would open a file a second time, at its beginning.
std::optional<int> descriptor_named(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    auto number = whole_number<int>(path.substr(folder.size()));
    if (number && *number >= 0) return number;
  }
  return std::nullopt;
}

// How long to wait after a signal: while no byte is taken, and in all.
constexpr std::uint64_t SILENCE_NS = 2'000'000'000, HURRY_NS = 30'000'000'000;

// The same pipe or terminal, opened non-blocking. Setting that on `fd` itself would affect every
// process that shares it: the shell, the command. Nothing if that is not possible.
Fd never_blocking(int fd) {
  struct stat of {};
  if (::fstat(fd, &of) != 0 || !(S_ISFIFO(of.st_mode) || ::isatty(fd))) return Fd();
  return Fd(::open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                   O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

bool is_low(const std::filesystem::space_info& space) {
  constexpr std::uintmax_t MAX = 1 << 30, PART = 20;
  return space.available < std::min(MAX, space.capacity / PART);
}

std::optional<std::filesystem::space_info> space_for(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  auto space = std::filesystem::space(folder.empty() ? "." : folder, error);
  return error ? std::nullopt : std::optional(space);
}

// No other device is written to: just opening one can have effects.
Result<TraceFile> TraceFile::null_device() {
  Fd fd(::open(NULL_DEVICE, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat opened {};
  bool is_it = fd && ::fstat(fd.get(), &opened) == 0 && S_ISCHR(opened.st_mode) &&
               opened.st_rdev == makedev(1, 3);
  if (!is_it)
    return Error{std::string(NULL_DEVICE) + " is not the null device here", "use -o to name a file",
                 exit_code::OUTPUT_FAILED};
  TraceFile file = stream(std::move(fd));
  file.at_once_ = SSIZE_MAX;
  return file;
}

Result<TraceFile> TraceFile::create(const std::string& path, bool may_replace, int hurry_fd) {
  if (auto named = descriptor_named(path)) {
    Fd fd(::fcntl(*named, F_DUPFD_CLOEXEC, 0));
    if (fd) return stream(std::move(fd), hurry_fd);
    return errno_error("cannot write to " + path, "sudo closes what its caller has open above 2",
                       exit_code::OUTPUT_FAILED);
  }
  if (path == NULL_DEVICE) return null_device();
  // A new inode each time: writing into an old one could follow a hard link that another user
  // planted.
  constexpr int FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(::open(path.c_str(), FLAGS, 0644));
  if (!fd && errno == EEXIST) {
    struct stat there {};
    if (::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
      return Error{"cannot write to " + path + ": it exists and is not a regular file",
                   "use -o to name another file, or -o - for standard output",
                   exit_code::OUTPUT_FAILED};
    if (may_replace && ::unlink(path.c_str()) == 0) fd = Fd(::open(path.c_str(), FLAGS, 0644));
  }
  if (!fd)
    return errno_error("cannot create " + path, "use -o to name a file that can be written",
                       exit_code::OUTPUT_FAILED);
  return TraceFile(std::move(fd), true);
}

TraceFile TraceFile::stream(Fd fd, int hurry_fd) {
  Fd own = never_blocking(fd.get());
  bool blocks = !own;
  TraceFile file(own ? std::move(own) : std::move(fd), false);
  // Where poll() finds room in a socket or a pipe, there is room for this much.
  file.at_once_ = blocks ? PIPE_BUF : SSIZE_MAX;
  file.hurry_fd_ = hurry_fd;
  return file;
}

// Waits until the stream can take something or has failed for good. False: stop waiting for it.
bool TraceFile::wait_for_reader() {
  for (;;) {
    std::uint64_t now = now_ns(CLOCK_MONOTONIC);
    std::uint64_t end =
        std::min(std::max(took_ns_, hurried_ns_) + SILENCE_NS, hurried_ns_ + HURRY_NS);
    gave_up_ = hurried_ns_ && now >= end;
    if (gave_up_) {
      errno = ETIMEDOUT;
      return false;
    }
    int ms = hurried_ns_ ? static_cast<int>((end - now) / 1'000'000 + 1) : -1;
    pollfd polled[] = {{fd_.get(), POLLOUT, 0}, {hurried_ns_ ? -1 : hurry_fd_, POLLIN, 0}};
    if (::poll(polled, std::size(polled), ms) < 0 && errno != EINTR) return true;
    if (polled[1].revents) hurried_ns_ = now_ns(CLOCK_MONOTONIC);
    if (polled[0].revents) return true;
  }
}

// Writes as much of `bytes` as it can; if that is not all, errno says why.
std::size_t TraceFile::write_some(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const char* from = bytes.data() + done;
    std::size_t size = bytes.size() - done;
    if (!can_cut_ && !wait_for_reader()) break;
    ssize_t written = can_cut_ ? ::pwrite(fd_.get(), from, size, static_cast<off_t>(size_ + done))
                               : ::write(fd_.get(), from, std::min(size, at_once_));
    if (written > 0) {
      done += static_cast<std::size_t>(written);
      if (!can_cut_) took_ns_ = now_ns(CLOCK_MONOTONIC);
    } else if (written < 0 && errno == EAGAIN) {
      ::poll(nullptr, 0, 1);  // another writer was quicker
    } else if (written == 0 || errno != EINTR) {
      if (written == 0) errno = EIO;
      break;
    }
  }
  return done;
}

// Makes the file end after `size` more bytes. If even truncating fails, the next write overwrites
// the rest.
std::size_t TraceFile::keep(std::size_t size) {
  int why = errno;
  size_ += size;
  if (can_cut_) [[maybe_unused]]
    int cut = ::ftruncate(fd_.get(), static_cast<off_t>(size_));
  errno = why;
  return size;
}

std::size_t TraceFile::append_lines(std::string_view bytes) {
  if (!finish()) return 0;
  std::size_t done = write_some(bytes);
  if (done == bytes.size()) {
    size_ += done;
    return done;
  }
  std::size_t whole = done ? bytes.rfind('\n', done - 1) + 1 : 0;  // npos + 1 is 0
  if (!can_cut_ && done > whole) {
    std::size_t end = bytes.find('\n', done) + 1;
    rest_ = bytes.substr(done, end - done);
    whole = end;
  }
  return keep(whole);
}

bool TraceFile::append_whole(std::string_view bytes) {
  if (!can_cut_) return append_lines(bytes) == bytes.size();
  if (write_some(bytes) == bytes.size()) {
    size_ += bytes.size();
    return true;
  }
  keep(0);
  return false;
}

bool TraceFile::finish() {
  std::size_t done = write_some(rest_);
  rest_.erase(0, done);
  return rest_.empty();
}

Result<> make_parent_folder(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path();
  if (parent.empty() || ::mkdir(parent.c_str(), 0755) == 0) return ok();
  if (errno != EEXIST)
    return errno_error("cannot create the folder " + parent + " for the trace",
                       "use -o to name a file in an existing folder", exit_code::OUTPUT_FAILED);
  struct stat there {};
  if (::geteuid() == 0 && ::lstat(parent.c_str(), &there) == 0 && S_ISLNK(there.st_mode) &&
      there.st_uid != 0)
    return Error{parent + " is a link that another user made: root does not follow it",
                 "use -o to name a file", exit_code::OUTPUT_FAILED};
  return ok();
}

}  // namespace cudabpf
