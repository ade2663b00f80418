#include "util/http/client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "support/temporary_folder.hpp"
#include "util/system/fd.hpp"

using namespace cudabpf;
using namespace cudabpf::http;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::size_t LONGEST_BODY = 1000;
constexpr std::chrono::milliseconds LONG{30'000}, SHORT{200};

void say(const Fd& to, std::string_view text) {
  while (!text.empty()) {
    ssize_t sent = ::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// What the client sent, up to its body's end.
std::string heard(const Fd& from, std::size_t body) {
  std::string text;
  char buffer[4096];
  while (text.find("\r\n\r\n") == text.npos || text.size() < text.find("\r\n\r\n") + 4 + body) {
    ssize_t got = ::recv(from.get(), buffer, sizeof(buffer), 0);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

bool is_gone(const Fd& client) {
  pollfd polled{client.get(), POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) > 0;
}

// A server on this machine that does this with one connection.
class OneServed {
 public:
  using Serve = std::function<void(const Fd& client)>;
  explicit OneServed(Serve serve) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(at);
    auto* address = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(listening_.get(), address, size) == 0);
    REQUIRE(::listen(listening_.get(), 1) == 0);
    REQUIRE(::getsockname(listening_.get(), address, &size) == 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this, serve = std::move(serve)] {
      Fd client(::accept(listening_.get(), nullptr, nullptr));
      if (client) serve(client);
    });
  }
  ~OneServed() {
    ::shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
  }
  Client client(const std::string& host = "127.0.0.1") const {
    return Client(
        *Url::parse("http://" + host + ":" + std::to_string(port_) + "/a?b", "--push", "/"),
        LONGEST_BODY);
  }

 private:
  Fd listening_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  unsigned port_ = 0;
  std::thread thread_;
};

std::string failure(const OneServed& server, Patience patience) {
  auto answer = server.client().get("text/plain", patience);
  REQUIRE_FALSE(answer);
  return answer.error().message;
}

}  // namespace

TEST_CASE("A request and its answer") {
  std::string asked;
  {
    OneServed server([&asked](const Fd& client) {
      asked = heard(client, 3);
      say(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    auto answer = server.client("localhost").post("text/x", "a\nb", Patience::of(LONG));
    REQUIRE(answer);
    CHECK(answer->body == "ok");
  }
  CHECK(asked.starts_with("POST /a?b HTTP/1.1\r\nHost: localhost:"));
  CHECK_THAT(asked, ContainsSubstring("\r\nConnection: close\r\n"));
  CHECK_THAT(asked, ContainsSubstring("\r\nContent-Type: text/x\r\nContent-Length: 3\r\n\r\na\nb"));
}

TEST_CASE("A server may answer before it has read all, and close") {
  OneServed server([](const Fd& client) {
    heard(client, 0);
    say(client, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    ::shutdown(client.get(), SHUT_WR);
    heard(client, std::string::npos / 2);
  });
  auto answer =
      server.client().post("text/x", std::string(std::size_t{64} << 20, 'x'), Patience::of(LONG));
  REQUIRE(answer);
  CHECK(answer->status == 413);
}

TEST_CASE("A server that closes, or says too much, or nothing, is given up") {
  CHECK(failure(OneServed([](const Fd&) {}), Patience::of(LONG)) != "");
  CHECK(failure(OneServed([](const Fd& client) {
                  heard(client, 0);
                  say(client, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
                }),
                Patience::of(LONG)) == "the connection was closed before the answer was whole");
  CHECK(failure(OneServed([](const Fd& client) {
                  heard(client, 0);
                  say(client, "HTTP/1.1 200 OK\r\n");
                  while (!is_gone(client)) say(client, "X-Header: x\r\n");
                }),
                Patience::of(LONG)) == "the answer is too long");
  CHECK(failure(OneServed([](const Fd& client) {
                  heard(client, 0);
                  heard(client, 1);  // until the client goes
                }),
                Patience::of(SHORT)) == "it took too long");
}

TEST_CASE("Time is that of the whole request, however often something comes") {
  OneServed server([](const Fd& client) {
    heard(client, 0);
    say(client, "HTTP/1.1 200 OK\r\n\r\n");
    while (!is_gone(client)) {
      say(client, "x");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  CHECK(failure(server, Patience::of(SHORT)) == "it took too long");
}

TEST_CASE("A request ends when its end is asked for") {
  Fd end(::eventfd(0, EFD_CLOEXEC));
  OneServed server([&end](const Fd& client) {
    heard(client, 0);
    std::uint64_t one = 1;
    CHECK(::write(end.get(), &one, sizeof(one)) == sizeof(one));
    heard(client, 1);
  });
  CHECK(failure(server, Patience::of(LONG, end.get())) == "it was given up");
}

TEST_CASE("Where nobody listens, and where nobody is") {
  std::string refused;
  {
    OneServed taken([](const Fd&) {});
    refused = taken.client().url().text();
    CHECK_FALSE(taken.client().get("text/plain", Patience::of(LONG)));
  }
  auto answer = Client(*Url::parse(refused, "--push", "/"), LONGEST_BODY)
                    .get("text/plain", Patience::of(LONG));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().message == "connecting: Connection refused");
  auto nowhere = Client(*Url::parse("http://no-such-host.invalid/", "--push", "/"), LONGEST_BODY)
                     .get("text/plain", Patience::of(LONG));
  REQUIRE_FALSE(nowhere);
  CHECK_THAT(nowhere.error().message, ContainsSubstring("no-such-host.invalid: "));
}

TEST_CASE("Names in a file as /etc/hosts") {
  TemporaryFolder folder;
  std::string path = folder.write(
      "hosts",
      "127.0.0.1 localhost # vm\n\n192.0.2.1\tvm VM2 vm.example\n# 192.0.2.2 vm\n::1 vm\n");
  CHECK(numbers_in_hosts(path, "VM") == std::vector<std::string>{"192.0.2.1", "::1"});
  CHECK(numbers_in_hosts(path, "vm2") == std::vector<std::string>{"192.0.2.1"});
  CHECK(numbers_in_hosts(path, "example").empty());
  CHECK(numbers_in_hosts(path + "x", "vm").empty());
}
