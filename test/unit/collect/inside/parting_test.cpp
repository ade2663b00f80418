// Connections with unread messages are closed elsewhere.
#include "collect/inside/parting.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <vector>

#include "collect/inside/listener.hpp"

using namespace cudabpf;
using namespace std::chrono_literals;

namespace {

struct Pair {
  Fd ours, theirs;
};

Pair connection() {
  int ends[2], on = 1;
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

void say(const Fd& to, std::string_view text, const std::vector<int>& fds = {}) {
  REQUIRE(send(to.get(), std::as_bytes(std::span(text)), fds));
}

// The process that closes it last waits for an hour. `peer` must stay open.
Fd lingering(Fd& peer) {
  Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(listening.get(), where, size) == 0);
  REQUIRE(listen(listening.get(), 1) == 0);
  REQUIRE(getsockname(listening.get(), where, &size) == 0);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(fd.get(), where, size) == 0);
  peer = Fd(accept(listening.get(), nullptr, nullptr));
  std::vector<char> much(1 << 16);
  while (::send(fd.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
  }
  linger hour{1, 3600};
  REQUIRE(setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof hour) == 0);
  return fd;
}

// The other side of the connection has been closed by every process, in time.
bool is_over(const Fd& theirs) {
  pollfd gone{theirs.get(), 0, 0};
  return poll(&gone, 1, 10'000) == 1 && gone.revents & POLLHUP;
}

}  // namespace

TEST_CASE("A message is seen where it is, and whether it brings descriptors") {
  Pair one = connection();
  std::array<std::byte, 8> buffer;
  auto seen = [&] { return peek(one.ours.get(), buffer); };
  CHECK_FALSE(seen());
  int file = STDIN_FILENO;
  say(one.theirs, "abc");
  say(one.theirs, "");
  say(one.theirs, "", {file});
  say(one.theirs, "larger than the buffer", {file, file});
  for (auto [size, brings] : {std::pair(3, false), {0, false}, {0, true}, {22, true}}) {
    auto first = seen();
    REQUIRE(first);
    CHECK(first->size == static_cast<std::size_t>(size));
    CHECK(first->brings_descriptors == brings);
    CHECK_FALSE(first->is_none);
    take_away(one.ours.get());
  }
  CHECK_FALSE(seen());
  say(one.theirs, "last");
  one.theirs.reset();
  CHECK(seen()->size == 4);
  take_away(one.ours.get());
  CHECK(seen()->is_none);

  // It has left something of ours unread, which the kernel reports first.
  Pair other = connection();
  say(other.ours, "unread");
  say(other.theirs, "left", {file});
  other.theirs.reset();
  auto first = peek(other.ours.get(), buffer);
  REQUIRE(first);
  CHECK(first->size == 4);
  CHECK(first->brings_descriptors);
}

TEST_CASE("Parting takes no time, whatever was left on the connection") {
  auto reader = elf::Reader::start();
  REQUIRE(reader);
  Fd peer;
  auto begin = std::chrono::steady_clock::now();
  {
    Parting parting(*reader);
    Pair one = connection();
    SECTION("nothing") {}
    SECTION("messages") {
      for (int i = 0; i < 5; i++) say(one.theirs, i % 2 ? "text" : "");
    }
    SECTION("a socket that lingers") { say(one.theirs, "text", {lingering(peer).get()}); }
    SECTION("a socket that lingers, behind other messages") {
      say(one.theirs, "");
      say(one.theirs, "text");
      say(one.theirs, "", {lingering(peer).get()});
    }
    SECTION("a socket that lingers, and our own message unread") {
      say(one.ours, "unread");
      say(one.theirs, "", {lingering(peer).get()});
    }
    SECTION("a connection on which a socket that lingers was left") {
      Pair inner = connection();
      say(inner.theirs, "text", {lingering(peer).get()});
      say(one.theirs, "text", {inner.ours.get()});
    }
    SECTION("more of them than the other process takes at once") {
      for (int i = 0; i < 30; i++) {
        Pair more = connection();
        say(more.theirs, "text", {STDIN_FILENO});
        parting.with(std::move(more.ours));
      }
      CHECK_FALSE(parting.is_behind());
    }
    parting.with(std::move(one.ours));
    CHECK_FALSE(one.ours);
    for (int i = 0; i < 1000; i++) {
      parting.go_on();
      if (pollfd gone{one.theirs.get(), 0, 0}; poll(&gone, 1, 1) == 1) break;
    }
    CHECK(is_over(one.theirs));
  }
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
}
