#include "util/elf/reading_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstring>
#include <string_view>

namespace cudabpf::elf::server {

namespace {

constexpr int SOCKET = 0;  // the server's only descriptor
// Some may never end: closing a stranger's file may take as long as the stranger likes.
constexpr int MAX_CHILDREN = 32;
constexpr std::size_t MAX_DESCRIPTORS = 2;

// What a child reports about a file that it has taken, ahead of its answer.
struct Identity {
  FileId id;
  char path[PATH_MAX];
};

// Room for the descriptors that come with a message, and for its sender, which comes first if the
// socket's owner has requested it.
union Control {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
};

struct Received {
  ssize_t size = -1;
  std::array<Fd, MAX_DESCRIPTORS> descriptors;
  bool whole = false;  // no descriptor was left out
};

Received receive(int socket, void* to, std::size_t most) {
  Received received;
  Control control{};
  iovec part{to, most};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  received.size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received.size < 0) return received;
  received.whole = !(message.msg_flags & MSG_CTRUNC);
  std::size_t count = 0;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= one->cmsg_len && count < MAX_DESCRIPTORS;
         at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(one) + at, sizeof fd);
      received.descriptors[count++] = Fd(fd);
    }
  }
  return received;
}

bool put(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(to, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Takes the file that comes with the next message; reports which one it is, and waits until it is
// wanted. Anything left open in this process is closed by its end, which waits for hardly anything:
// not for a socket that lingers.
Fd take_file(const Fd& socket, const Fd& answer) {
  char message[1];  // what else is in it is known
  Received received = receive(socket.get(), message, sizeof message);
  auto& [file, more] = received.descriptors;
  if (!received.whole || !file || more) _exit(1);
  auto id = FileId::of(file.get());
  if (!id) _exit(1);
  Identity identity{};
  identity.id = *id;
  std::string link = "/proc/self/fd/" + std::to_string(file.get());
  if (readlink(link.c_str(), identity.path, sizeof identity.path - 1) <= 0)
    std::strcpy(identity.path, "a library");
  char yes = 0;
  if (!put(answer.get(), {reinterpret_cast<const char*>(&identity), sizeof identity}) ||
      read(answer.get(), &yes, sizeof yes) != sizeof yes)
    _exit(1);
  return std::move(file);
}

// In the child.
[[noreturn]] void carry_out(Work work, const sandbox::Limits& limits, Fd received_all) {
  Request request;
  Received received = receive(SOCKET, &request, sizeof request);
  received_all.reset();
  close(SOCKET);
  auto& [file, answer] = received.descriptors;
  if (received.size != sizeof request || !sandbox::bound_time(limits)) _exit(1);
  char more = 0;
  if (request.task == Task::discard) _exit(read(answer.get(), &more, sizeof more) == 0 ? 0 : 1);
  Fd taken = request.task == Task::take ? take_file(file, answer) : std::move(file);
  struct stat status {};
  if (fstat(taken.get(), &status) != 0 || !sandbox::enter(taken.get(), answer.get(), limits))
    _exit(1);
  std::string bytes = work(taken.get(), static_cast<std::uint64_t>(status.st_size), request.wanted);
  _exit(put(answer.get(), bytes) ? 0 : 1);
}

// False: no client is left to make requests.
bool wait_for_room(int& children) {
  while (children > 0) {
    if (waitpid(-1, nullptr, WNOHANG) > 0) {
      children--;
      continue;
    }
    if (children < MAX_CHILDREN) break;
    constexpr int TICK_MS = 20;
    pollfd gone{SOCKET, 0, 0};
    if (poll(&gone, 1, TICK_MS) > 0) return false;
  }
  return true;
}

// The child receives the request, so the server never has what comes with it; the server goes on
// when the child has received it.
void start_child(Work work, const sandbox::Limits& limits, int& children) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) _exit(1);
  Fd to_read(ends[0]), to_write(ends[1]);
  pid_t child = fork();
  if (child == 0) {
    to_read.reset();
    carry_out(work, limits, std::move(to_write));
  }
  constexpr useconds_t AGAIN_AFTER_US = 10'000;
  if (child < 0) usleep(AGAIN_AFTER_US);
  if (child > 0) children++;
  to_write.reset();
  char nothing;
  if (read(to_read.get(), &nothing, sizeof nothing) < 0) _exit(1);
}

}  // namespace

bool send_request(int server, const Request& request, std::span<const int> descriptors) {
  Control control{};
  iovec part{const_cast<Request*>(&request), sizeof request};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return sendmsg(server, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof request);
}

std::optional<Taken> take_identity(std::string& answer) {
  Identity identity;
  if (answer.size() < sizeof identity) return std::nullopt;
  std::memcpy(&identity, answer.data(), sizeof identity);
  answer.erase(0, sizeof identity);
  identity.path[sizeof identity.path - 1] = '\0';
  return Taken{identity.id, identity.path};
}

void serve(int socket, pid_t parent, Work work, const sandbox::Limits& limits) {
  // It ends with its parent: by a signal, or because the socket's other end is closed.
  sigset_t all;
  sigfillset(&all);
  bool ready = sigprocmask(SIG_SETMASK, &all, nullptr) == 0 &&
               (socket == SOCKET || dup2(socket, SOCKET) == SOCKET) &&
               syscall(SYS_close_range, SOCKET + 1, ~0U, 0) == 0 && sandbox::drop_rights() &&
               prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
  if (!ready) _exit(1);
  setsid();
  prctl(PR_SET_NAME, "cudabpf-reading");
  std::signal(SIGCHLD, SIG_DFL);
  int children = 0;
  for (;;) {
    char nothing;
    if (recv(SOCKET, &nothing, sizeof nothing, MSG_PEEK) <= 0) _exit(0);
    if (!wait_for_room(children)) _exit(0);
    start_child(work, limits, children);
  }
}

}  // namespace cudabpf::elf::server
