#include "util/http/client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace cudabpf::http {

namespace {

Result<Fd> connected(const SocketAddress& to, const Patience& patience) {
  Fd fd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("connecting");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0) return fd;
  if (errno != EINPROGRESS) return errno_error("connecting");
  if (auto came = patience.wait(fd.get(), POLLOUT); !came) return came.error();
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return fd;
  errno = error;
  return errno_error("connecting");
}

// What is sent, in two parts, of which neither is copied.
struct Unsent {
  std::string_view head, body;

  bool is_empty() const { return head.empty() && body.empty(); }
  // A server that has read enough may close the connection, and has answered then.
  void send_some(int fd) {
    std::string_view& part = head.empty() ? body : head;
    ssize_t sent = ::send(fd, part.data(), part.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      part.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno != EAGAIN && errno != EINTR)
      head = body = {};
  }
};

}  // namespace

std::string Client::head(std::string_view method) const {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: cudabpf/{}\r\nConnection: close\r\n", method,
      url_.target, url_.authority(), CUDABPF_VERSION);
}

Result<Answer> Client::get(std::string_view accepted, const Patience& patience) {
  return ask(fmt::format("{}Accept: {}\r\n\r\n", head("GET"), accepted), "", patience);
}

Result<Answer> Client::post(std::string_view content_type, std::string_view body,
                            const Patience& patience) {
  return ask(fmt::format("{}Content-Type: {}\r\nContent-Length: {}\r\n\r\n", head("POST"),
                         content_type, body.size()),
             body, patience);
}

// To the first address that takes the connection: one that does not answer at all leaves time for
// the others.
Result<Fd> Client::connect(const Patience& patience) {
  auto addresses = TRY(lookup_.addresses(patience));
  Error failed{url_.host + " has no address"};
  for (std::size_t i = 0; i < addresses.size(); i++) {
    auto fd = connected(addresses[i], patience.shared_by(addresses.size() - i));
    if (fd) return fd;
    failed = fd.error();
  }
  return failed;
}

Result<Answer> Client::ask(std::string_view head, std::string_view body, const Patience& patience) {
  Fd fd = TRY(connect(patience));
  Unsent unsent{head, body};
  AnswerReader reader(most_body_);
  std::array<char, 16384> buffer;
  while (!reader.is_whole()) {
    short events = POLLIN;
    if (!unsent.is_empty()) events |= POLLOUT;
    short came = TRY(patience.wait(fd.get(), events));
    if (came & POLLOUT) unsent.send_some(fd.get());
    if (!(came & (POLLIN | POLLHUP | POLLERR))) continue;
    ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (got > 0)
      TRY(reader.take({buffer.data(), static_cast<std::size_t>(got)}));
    else if (got == 0)
      TRY(reader.close());
    else if (errno != EAGAIN && errno != EINTR)
      return errno_error("reading the answer");
  }
  return std::move(reader.answer());
}

}  // namespace cudabpf::http
