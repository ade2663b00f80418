#include "serve/connections.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <catch2/catch_test_macros.hpp>

#include "util/system/fd.hpp"

using namespace cudabpf;
using namespace cudabpf::serve;
using namespace std::chrono_literals;
using Phase = Connections::Connection::Phase;

namespace {

struct Pair {
  Pair() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    server = Fd(fds[0]);
    client = Fd(fds[1]);
  }
  bool is_cut() const {
    pollfd end{client.get(), POLLRDHUP, 0};
    ::poll(&end, 1, 0);
    return end.revents & POLLRDHUP;
  }
  Fd server, client;
};

const Connections::Clock::time_point NOW{1000s};

}  // namespace

TEST_CASE("A request must be whole after ten seconds") {
  Connections connections;
  Pair pair;
  connections.add(pair.server.get(), NOW);
  REQUIRE(connections.begin(pair.server.get()));
  CHECK(connections.end_slow(NOW + 10s) == 0);
  CHECK_FALSE(pair.is_cut());
  CHECK(connections.end_slow(NOW + 11s) == 1);
  CHECK(pair.is_cut());
  CHECK(connections.size() == 1);  // until the server's thread lets it go
}

TEST_CASE("A response must be taken at some speed") {
  Connections connections;
  Pair pair;
  connections.add(pair.server.get(), NOW);
  auto& connection = *connections.begin(pair.server.get());
  connections.enter(connection, Phase::waiting, NOW);
  CHECK(connections.end_slow(NOW + 1h) == 0);  // the server's own time
  connections.enter(connection, Phase::response, NOW + 1h);
  CHECK(connections.end_slow(NOW + 1h + 10s) == 0);
  connection.sent = 20 * Connections::SLOWEST;
  CHECK(connections.end_slow(NOW + 1h + 30s) == 0);
  CHECK_FALSE(pair.is_cut());
  CHECK(connections.end_slow(NOW + 1h + 31s) == 1);
  CHECK(pair.is_cut());
  connections.remove(connection);
  CHECK(connections.size() == 0);
}

TEST_CASE("A connection that was never served is forgotten, and its descriptor left alone") {
  Connections connections;
  Pair pair;
  connections.add(pair.server.get(), NOW);
  connections.end_all();
  connections.end_slow(NOW + 11s);
  CHECK(connections.size() == 0);
  CHECK_FALSE(pair.is_cut());
  CHECK(connections.begin(pair.server.get()) == nullptr);
}

TEST_CASE("Their number is limited") {
  Connections connections;
  for (int fd = 0; fd < static_cast<int>(Connections::MAX); fd++) {
    CHECK_FALSE(connections.is_full());
    connections.add(1000 + fd, NOW);
  }
  CHECK(connections.is_full());
}
