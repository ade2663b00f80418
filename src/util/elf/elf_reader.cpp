#include "util/elf/elf_reader.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>

#include "util/system/pipe.hpp"

namespace cudabpf::elf {

namespace {

// The server's only descriptor besides those that a request brings.
constexpr int SOCKET = 0;
struct Request {
  Wanted wanted;
  Fd file, answer;
};

// Room for the two descriptors that come with a message.
union Control {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(2 * sizeof(int))];
};

bool send_request(int socket, const Wanted& wanted, int file, int answer) {
  Control control{};
  iovec part{const_cast<Wanted*>(&wanted), sizeof wanted};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  int descriptors[] = {file, answer};
  std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof wanted);
}

// False: no more requests will come.
bool receive_request(Request& request) {
  Control control{};
  iovec part{&request.wanted, sizeof request.wanted};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t size = recvmsg(SOCKET, &message, 0);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (size != static_cast<ssize_t>(sizeof request.wanted) || !header ||
      header->cmsg_len != CMSG_LEN(2 * sizeof(int)))
    return false;
  int descriptors[2];
  std::memcpy(descriptors, CMSG_DATA(header), sizeof descriptors);
  request.file = Fd(descriptors[0]);
  request.answer = Fd(descriptors[1]);
  return true;
}

[[noreturn]] void answer(const Request& request, Reader::Work work, const sandbox::Limits& limits) {
  close(SOCKET);
  struct stat status {};
  if (fstat(request.file.get(), &status) != 0 ||
      !sandbox::enter(request.file.get(), request.answer.get(), limits))
    _exit(1);
  std::string bytes =
      work(request.file.get(), static_cast<std::uint64_t>(status.st_size), request.wanted);
  for (std::string_view rest = bytes; !rest.empty();) {
    ssize_t written = write(request.answer.get(), rest.data(), rest.size());
    if (written <= 0) _exit(1);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  _exit(0);
}

[[noreturn]] void serve(int socket, pid_t parent, Reader::Work work,
                        const sandbox::Limits& limits) {
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
  std::signal(SIGCHLD, SIG_IGN);  // nobody waits for children
  for (;;) {
    Request request;
    if (!receive_request(request)) _exit(0);
    if (fork() == 0) answer(request, work, limits);
  }
}

}  // namespace

std::string Reader::read_contents(int file, std::uint64_t size, const Wanted& wanted) {
  try {
    auto image = Image::parse(bytes_of_file(file, size));
    return encode(image ? contents_of(*image, wanted) : image.error());
  } catch (const std::bad_alloc&) {
    return encode(Error{"reading it takes too much memory"});
  }
}

Result<Reader> Reader::start(const sandbox::Limits& limits, Work work) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("starting the process that reads libraries");
  Fd ours(ends[0]), theirs(ends[1]);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return errno_error("starting the process that reads libraries");
  if (pid == 0) serve(theirs.get(), parent, work, limits);
  return Reader({pid, std::move(ours)}, limits);
}

Reader::~Reader() {
  if (!server_.socket) return;
  server_.socket.reset();  // ends the server even if this program may no longer signal it
  bool killed = kill(server_.pid, SIGKILL) == 0;
  waitpid(server_.pid, nullptr, killed ? 0 : WNOHANG);
}

Result<Contents> Reader::read(const Fd& file, const Wanted& wanted) const {
  using Clock = std::chrono::steady_clock;
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return errno_error("reading it");
  if (!S_ISREG(status.st_mode)) return Error{"not a regular file"};
  auto [reading, writing] = TRY(make_pipe());
  if (!send_request(server_.socket.get(), wanted, file.get(), writing.get()))
    return Error{"the process that reads libraries has ended",
                 "something killed it; start cudabpf again"};
  writing.reset();

  constexpr auto SLACK = std::chrono::milliseconds(100);  // so that the child ends itself first
  auto give_up = Clock::now() + limits_.wall + SLACK;
  std::string answer;
  std::array<char, 65536> buffer;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - Clock::now());
    pollfd ready{reading.get(), POLLIN, 0};
    if (left.count() <= 0 ||
        (poll(&ready, 1, static_cast<int>(left.count())) < 0 && errno != EINTR))
      return Error{"reading it takes too long"};
    if (!ready.revents) continue;
    ssize_t got = ::read(reading.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(got));
    if (answer.size() > MAX_ANSWER) break;
  }
  if (answer.empty()) return Error{"reading it took too long, or broke the process that reads it"};
  return decode(answer, static_cast<std::uint64_t>(status.st_size));
}

}  // namespace cudabpf::elf
