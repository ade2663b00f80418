#include "util/system/stoppable_thread.hpp"

#include <poll.h>

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("A thread that waits ends when it is stopped") {
  bool was_stopping = false;
  {
    StoppableThread thread;
    REQUIRE(thread.start("testing", [&] {
      pollfd stop{thread.stop_fd(), POLLIN, 0};
      ::poll(&stop, 1, -1);
      was_stopping = thread.is_stopping();
    }));
    thread.stop();
    CHECK(was_stopping);
    thread.stop();  // it was already
  }
  StoppableThread never_started;
  never_started.stop();
}

TEST_CASE("What is set stays so until it is cleared") {
  EventFd event = EventFd::make();
  CHECK_FALSE(event.clear());
  event.set();
  event.set();
  CHECK(is_readable(event.get()));
  CHECK(event.clear());
  CHECK_FALSE(is_readable(event.get()));
}
