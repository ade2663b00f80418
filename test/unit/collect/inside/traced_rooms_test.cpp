#include "collect/inside/traced_rooms.hpp"

#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <utility>

#include "collect/inside/process_records.hpp"
#include "support/inside_room.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;

namespace {

// A process that ends, and what is told of it.
class Ending {
 public:
  Ending() {
    Newcomer newcomer;
    newcomer.record = process_record(abi::CB_EXEC, getpid(), now());
    newcomer.inner_pid = newcomer.record.head.pid;
    newcomer.room = inside.owner;
    rooms.add(std::move(newcomer), [](auto) {});
    inside.take_ring(7);
  }
  static std::uint64_t now() { return now_ns(CLOCK_MONOTONIC); }

  void end() {
    rooms.leave(static_cast<std::uint32_t>(getpid()), [this](auto) { told++; });
    counts = rooms.counts();
    CHECK(counts.entered == counts.known());
    CHECK(counts.emitted == told);
  }
  std::uint64_t dropped() const { return counts.known() - counts.emitted; }

  Inside inside;
  TracedRooms rooms{false, abi::CI_MONOTONIC};
  InsideCounts counts;
  std::uint64_t told = 0;
};

}  // namespace

TEST_CASE("A process that is killed in the midst of a record has lost none") {
  Ending process;
  process.inside.write(Ending::now());
  SECTION("while it writes") { process.inside.ring().counters[abi::CB_ENTERED]++; }
  SECTION("before it has counted what it wrote") {
    process.inside.ring().counters[abi::CB_EMITTED]--;
  }
  process.end();
  CHECK(process.told == 1);
  CHECK(process.dropped() == 0);
  CHECK(process.rooms.broken() == 0);
}

TEST_CASE("What was lost in a process that has ended stays lost") {
  Ending process;
  process.inside.write(Ending::now());
  process.inside.ring().counters[abi::CB_ENTERED]++;
  process.inside.ring().counters[abi::CB_DROPPED_RETURN]++;
  process.inside.take_ring(8, 1);
  process.inside.ring(1).counters[abi::CB_ENTERED]++;
  process.end();
  CHECK(process.told == 1);
  CHECK(process.counts.dropped[abi::CB_DROPPED_RETURN] == 1);
  CHECK(process.dropped() == 1);
  CHECK(process.rooms.broken() == 0);
}

TEST_CASE("Counters of a process that has ended and that cannot be right are said to be wrong") {
  Ending process;
  process.inside.write(Ending::now());
  process.inside.ring().counters[abi::CB_ENTERED] += 2;
  process.end();
  CHECK(process.told == 1);
  CHECK(process.dropped() == 0);
  CHECK(process.rooms.broken() == 1);
}

TEST_CASE("A record of the future that a process has left behind is not lost without a word") {
  Ending process;
  process.inside.write(Ending::now());
  process.inside.write(Ending::now() + 500'000'000);
  process.end();
  CHECK(process.told == 1);
  CHECK(process.rooms.broken() == 1);
}
