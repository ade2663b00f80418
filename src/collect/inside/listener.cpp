#include "collect/inside/listener.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

namespace cudabpf {

namespace {

constexpr int MAX_WAITING = 256;
constexpr std::size_t MAX_FDS = 4;
constexpr std::string_view FOLDER = "cudabpf-", DOOR = "/listener";

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

const sockaddr* pointer_to(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Fd make_socket() { return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

bool is_folder_of_a_listener(std::string_view name) {
  constexpr std::size_t DIGITS = 16;
  return name.starts_with(FOLDER) && name.size() == FOLDER.size() + DIGITS &&
         name.find_first_not_of("0123456789abcdef", FOLDER.size()) == name.npos;
}

// Its cudabpf has been killed. A young folder's may be about to listen.
bool was_left(const std::string& folder) {
  constexpr time_t YOUNG_S = 60;
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != geteuid() || status.st_mtime > time(nullptr) - YOUNG_S)
    return false;
  auto address = address_of(folder + std::string(DOOR));
  Fd socket = make_socket();
  return address && socket && connect(socket.get(), pointer_to(*address), sizeof(*address)) != 0 &&
         (errno == ECONNREFUSED || errno == ENOENT);
}

void remove_left(const std::string& among) {
  constexpr int MAX = 10'000;  // entries; the program may be waiting
  DIR* folder = opendir(among.c_str());
  if (!folder) return;
  for (int i = 0; i < MAX; i++) {
    const dirent* entry = readdir(folder);
    if (!entry) break;
    std::string path = among + "/" + entry->d_name;
    if (!is_folder_of_a_listener(entry->d_name) || !was_left(path)) continue;
    unlink((path + std::string(DOOR)).c_str());
    rmdir(path.c_str());
  }
  closedir(folder);
}

}  // namespace

Result<std::string> Listener::choose_path(const std::string& temporary) {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number))
    return errno_error("drawing a random number");
  // A relative path would mean another file to a command that runs elsewhere.
  bool usable = temporary.starts_with('/') && temporary.size() < 64 &&
                access(temporary.c_str(), W_OK | X_OK) == 0;
  return fmt::format("{}/{}{:016x}{}", usable ? temporary : "/tmp", FOLDER, number, DOOR);
}

Result<Listener> Listener::open(std::string path, std::vector<uid_t> users) {
  std::string folder = folder_of(path);
  auto address = address_of(path);
  if (!address) return Error{path + ": this path is too long"};
  remove_left(folder_of(folder));
  // Root may enter in any case.
  bool for_others =
      std::any_of(users.begin(), users.end(), [](uid_t uid) { return uid && uid != geteuid(); });
  const mode_t passable = for_others ? 0711 : 0700;
  if (mkdir(folder.c_str(), passable) != 0)
    return errno_error("making " + folder, "TMPDIR may name another folder");
  Listener listener(make_socket(), std::move(path), For::users, std::move(users));
  // The command may run as another user, and umask may have been stricter.
  if (chmod(folder.c_str(), passable) != 0) return errno_error("opening " + folder);
  TRY(listener.listen());
  return listener;
}

Result<Listener> Listener::open_for_all(std::string path) {
  auto address = address_of(path);
  if (!address) return Error{path + ": this path is too long"};
  std::string folder = folder_of(path);
  constexpr mode_t PASSABLE = 0755;
  if (mkdir(folder.c_str(), PASSABLE) != 0 && errno != EEXIST)
    return errno_error("making " + folder, "the listener's path can be another one");
  Fd other = make_socket();
  if (other && connect(other.get(), pointer_to(*address), sizeof(*address)) == 0)
    return Error{path + ": another cudabpf listens there"};
  struct stat status {};
  if (errno == ECONNREFUSED && lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode))
    unlink(path.c_str());
  Listener listener(make_socket(), std::move(path), For::all);
  TRY(listener.listen());
  return listener;
}

// umask may be stricter than is wanted.
Result<> Listener::listen() {
  constexpr mode_t FOR_ALL = 0666;
  auto address = address_of(path_);
  if (socket_ && bind(fd(), pointer_to(*address), sizeof(*address)) == 0) {
    if (chmod(path_.c_str(), FOR_ALL) == 0 && ::listen(fd(), MAX_WAITING) == 0) return ok();
  }
  Error error = errno_error("opening the socket " + path_);
  socket_ = {};  // what is at the path may be another's
  return error;
}

Listener::~Listener() {
  if (!socket_) return;
  // A process that still waits to be accepted may have sent something; this process's end closes
  // it.
  socket_.release();
  unlink(path_.c_str());
  if (for_ == For::users) rmdir(folder_of(path_).c_str());
}

void Listener::keep_spares() {
  for (Fd& spare : spares_)
    if (!spare) spare = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

// accept() takes a descriptor before it looks whether a connection waits.
Fd Listener::accept_one(bool& with_spare) {
  auto accepted = [this] {
    return Fd(accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  };
  Fd socket = accepted();
  with_spare = !socket && (errno == EMFILE || errno == ENFILE) && spares_[0];
  if (!with_spare) return socket;
  give_up_spares();
  socket = accepted();
  int reason = errno;
  if (!socket) keep_spares();
  errno = reason;
  return socket;
}

std::optional<Connection> Listener::next() {
  for (;;) {
    keep_spares();
    Connection connection;
    connection.socket = accept_one(connection.is_last);
    if (!connection.socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return std::nullopt;
    }
    int on = 1;  // distinguishes an empty message from none: see peek()
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    int fd = connection.socket.get();
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
      return connection;
    connection.pid = credentials.pid;
    connection.is_let_in =
        credentials.pid > 0 && (for_ == For::all || std::find(users_.begin(), users_.end(),
                                                              credentials.uid) != users_.end());
    return connection;
  }
}

std::optional<Waiting> peek(int socket, std::span<std::byte> buffer) {
  // For the sender, which SharedRings gets with each message, and for no descriptor.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  ssize_t got = -1;
  // The first time, the other side's end may be reported, though it has left messages.
  for (int i = 0; i < 2 && got < 0; i++) {
    header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    got = recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  }
  if (got < 0) return Waiting{.size = 0, .brings_descriptors = true, .is_none = true};
  if (got == 0 && header.msg_controllen == 0)
    return Waiting{.size = 0, .brings_descriptors = false, .is_none = true};
  return Waiting{.size = static_cast<std::size_t>(got),
                 .brings_descriptors = bool(header.msg_flags & MSG_CTRUNC),
                 .is_none = false};
}

void take_away(int socket) {
  char nothing;
  recv(socket, &nothing, sizeof(nothing), MSG_DONTWAIT);
}

bool send(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(MAX_FDS * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    auto* one = reinterpret_cast<cmsghdr*>(control);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    one->cmsg_level = SOL_SOCKET;
    one->cmsg_type = SCM_RIGHTS;
    one->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(one), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace cudabpf
