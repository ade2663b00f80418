#include "collect/inside/thread_ids.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <string>

#include "support/temporary_folder.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t SECOND = 1'000'000'000, BEGUN_AT = 50 * SECOND;

// A /proc with a process 42 that calls itself 1.
class Container {
 public:
  void thread(std::uint32_t tid, std::uint32_t inner) {
    folder.write(fmt::format("42/task/{}/status", tid),
                 fmt::format("Name:\ta\nNSpid:\t{}\t{}\n", tid, inner));
  }
  void end(std::uint32_t tid) {
    std::filesystem::remove_all(folder.path() / fmt::format("42/task/{}", tid));
  }

  TemporaryFolder folder;
  ThreadIds ids{42, 1, Procfs(folder.path())};
};

using Tid = std::optional<std::uint32_t>;

}  // namespace

TEST_CASE("Threads of another pid namespace are found by what they call themselves") {
  Container container;
  container.thread(42, 1);
  container.thread(50, 7);
  CHECK(container.ids.find(1, BEGUN_AT) == Tid(42));
  CHECK(container.ids.find(7, BEGUN_AT) == Tid(50));
  CHECK_FALSE(container.ids.find(8, BEGUN_AT));
  container.thread(51, 8);
  CHECK(container.ids.find(8, BEGUN_AT) == Tid(51));
  SECTION("but not those that have ended") {
    container.end(50);
    CHECK_FALSE(container.ids.find(7, BEGUN_AT));
  }
  SECTION("nor another one with the id of one that has ended") {
    container.thread(50, 9);
    CHECK_FALSE(container.ids.find(7, BEGUN_AT));
    CHECK(container.ids.find(9, BEGUN_AT) == Tid(50));
  }
  SECTION("nor one whose own id is used again") {
    container.end(50);
    container.thread(52, 7);
    CHECK(container.ids.find(7, BEGUN_AT) == Tid(52));
  }
  CHECK(container.ids.not_looked_up() == 0);
}

TEST_CASE(
    "If a process changes thread ids all the time, only a limited number is looked up a second") {
  Container container;
  constexpr std::uint32_t THREADS = 63;
  for (std::uint32_t i = 0; i < THREADS; i++) container.thread(100 + i, 2 + i);
  // At first each thread is looked at; from then on each walk takes the list alone.
  constexpr std::int64_t WALK = THREADS + 1, FIRST = WALK + THREADS * ThreadIds::LOOK;
  constexpr std::uint64_t MAX = 1 + (ThreadIds::MAX_WORK - FIRST + WALK - 1) / WALK, MORE = 50;
  auto look_up = [&](std::uint64_t times, std::uint64_t now) {
    for (std::uint64_t i = 0; i < times; i++) CHECK_FALSE(container.ids.find(5000, now));
  };
  look_up(MAX, BEGUN_AT);
  CHECK(container.ids.not_looked_up() == 0);
  look_up(MORE, BEGUN_AT);
  CHECK(container.ids.not_looked_up() == MORE);
  CHECK_FALSE(container.ids.find(2, BEGUN_AT));  // nor is an honest thread of it
  CHECK(container.ids.find(1, BEGUN_AT) == Tid(42));
  CHECK(container.ids.not_looked_up() == MORE + 1);
  // After a second it is the same again, however much was to be looked up meanwhile.
  CHECK(container.ids.find(2, BEGUN_AT + SECOND) == Tid(100));
  look_up(ThreadIds::MAX_WORK / WALK + MORE, BEGUN_AT + SECOND);
  CHECK(container.ids.not_looked_up() >= 2 * MORE + 1);
  CHECK(container.ids.not_looked_up() <= 2 * MORE + 3);
}

TEST_CASE("Where there is one pid namespace, looks are bounded, too") {
  auto pid = static_cast<std::uint32_t>(getpid());
  ThreadIds ids(pid, pid);
  constexpr std::uint64_t MAX = ThreadIds::MAX_WORK / ThreadIds::LOOK;
  for (std::uint64_t i = 0; i < MAX; i++) REQUIRE(ids.find(1 << 29, BEGUN_AT) == Tid(1 << 29));
  CHECK_FALSE(ids.find(1 << 29, BEGUN_AT));
  CHECK(ids.find(pid, BEGUN_AT) == Tid(pid));
  CHECK(ids.not_looked_up() == 1);
}
