#include "collect/inside/shared_rings.hpp"

#include <sys/stat.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>
#include <vector>

#include "support/inside_rings.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t NOW = 1'000'000'000;

// The times of the records that can be read now.
std::vector<std::uint64_t> read(Inside& inside, std::size_t number = 0, std::uint64_t until = NOW) {
  std::vector<std::uint64_t> times;
  alignas(8) std::byte copy[8192];
  REQUIRE(number < inside.shared.rings());
  ThreadRing& from = inside.shared.ring(number);
  from.look();
  while (auto ts = from.next(until, until)) {
    times.push_back(*ts);
    auto record = from.take(copy);
    CHECK(record.size() >= sizeof(abi::cb_head));
  }
  return times;
}

std::size_t resident(int fd) {
  struct stat status {};
  fstat(fd, &status);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

}  // namespace

TEST_CASE("A thread's records are read in its order, each once") {
  Inside inside;
  CHECK(inside.shared.rings() == 0);
  inside.take_ring(7);
  CHECK(read(inside).empty());
  for (std::uint64_t ts : {1, 2, 3}) inside.write(ts);
  CHECK(read(inside) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(read(inside).empty());
  CHECK(inside.shared.ring(0).tid() == 7);
  CHECK(inside.ring().tail == inside.ring().head);
}

TEST_CASE("What was made after the moment that counts waits") {
  Inside inside;
  inside.take_ring(7);
  inside.write(NOW - 1);
  inside.write(NOW + 1);
  CHECK(read(inside) == std::vector<std::uint64_t>{NOW - 1});
  CHECK(read(inside, 0, NOW + 1) == std::vector<std::uint64_t>{NOW + 1});
}

TEST_CASE("Records of any size go round a ring of any size") {
  std::uint64_t ring_size = GENERATE(64 << 10, 1 << 20, 16 << 20);
  Inside inside(ring_size);
  inside.take_ring(7);
  inside.take_ring(8, 1);
  inside.write(5, 64, 1);  // the next ring begins where this one ends
  std::uint64_t ts = 0;
  while (inside.ring().head < ring_size + (ring_size >> 1)) {
    std::uint32_t size = 32 + static_cast<std::uint32_t>(ts * 37 % 4000);
    inside.write(++ts, size);
    CHECK(read(inside) == std::vector<std::uint64_t>{ts});
  }
  CHECK(read(inside, 1) == std::vector<std::uint64_t>{5});
  CHECK(inside.shared.broken() == 0);
  InsideCounts counts = inside.shared.counts();
  CHECK(counts.entered == ts + 1);
  CHECK(counts.emitted == ts + 1);
}

TEST_CASE("A ring says when an eighth of it is taken") {
  Inside inside(64 << 10);
  inside.take_ring(7);
  REQUIRE(inside.shared.rings() == 1);
  constexpr std::uint32_t EACH = 1016;  // 1 KiB with its slot
  for (std::uint64_t ts = 1; ts <= 8; ts++) {
    inside.write(ts, EACH);
    CHECK_FALSE(inside.shared.ring(0).look());
  }
  inside.write(9, EACH);
  CHECK(inside.shared.ring(0).look());
  read(inside);
  CHECK_FALSE(inside.shared.ring(0).look());
}

TEST_CASE("Nonsense ends the reading of that ring, and is counted once") {
  Inside inside;
  inside.take_ring(7);
  inside.take_ring(8, 1);
  inside.write(1);
  std::uint64_t at = inside.ring().head;
  abi::ci_ring& ring = inside.ring();
  SECTION("a head that is not where a slot can be") { ring.head += 4; }
  SECTION("a head beyond the ring") { ring.head += 2 * CI_RING_SIZE; }
  SECTION("a head before what was read") {
    read(inside);
    ring.head = 0;
  }
  SECTION("a record that is too short") {
    inside.write(2);
    inside.put_slot(at, {8, 0});
  }
  SECTION("a record that is too long") {
    inside.write(2);
    inside.put_slot(at, {1 << 30, 0});
  }
  SECTION("a record that is longer than what was written") {
    inside.write(2);
    inside.put_slot(at, {64, 0});
  }
  SECTION("nothing where the ring goes on") {
    inside.write(2);
    inside.put_slot(at, {32, 1});
  }
  SECTION("a record of the future") { inside.write(NOW + 3'000'000'000); }
  read(inside);
  CHECK(inside.shared.broken() == 1);
  ring.head = at + 1024;
  CHECK(read(inside).empty());
  CHECK(inside.shared.broken() == 1);
  // What the ring says of itself no longer counts.
  ring.counters[abi::CB_EMITTED] = 1'000'000;
  CHECK(inside.shared.counts().emitted == inside.shared.ring(0).taken());
  // Others go on.
  inside.write(5, sizeof(abi::cb_head), 1);
  CHECK(read(inside, 1) == std::vector<std::uint64_t>{5});
}

TEST_CASE("More rings than there are is a lie") {
  Inside inside;
  inside.head().used = 1 << 30;
  CHECK(inside.shared.rings() == CI_RINGS);
}

TEST_CASE("A ring whose thread has gone is given back when all of it was read") {
  Inside inside;
  inside.take_ring(7);
  for (int i = 0; i < 10'000; i++) inside.write(1);
  std::size_t before = resident(inside.shared.fd());
  inside.ring().state = abi::CI_LEFT;
  REQUIRE(inside.shared.rings() == 1);
  ThreadRing& ring = inside.shared.ring(0);
  CHECK(!ring.was_left());
  CHECK(read(inside).size() == 10'000);
  REQUIRE(ring.was_left());
  ring.free();
  CHECK(inside.ring().state == abi::CI_FREE);
  CHECK(resident(inside.shared.fd()) + 400'000 < before);
  inside.take_ring(9);
  inside.write(2);
  CHECK(read(inside) == std::vector<std::uint64_t>{2});
}

TEST_CASE("What is unread when time runs out is counted without reading it") {
  constexpr std::uint64_t WRITTEN = 50'000;
  Inside inside;
  inside.take_ring(7);
  inside.write(1);
  CHECK(read(inside).size() == 1);
  std::size_t before = resident(inside.shared.fd());
  // The ring is full, according to its head; its memory has never been touched.
  abi::ci_ring& ring = inside.ring();
  ring.head += CI_RING_SIZE;
  ring.counters[abi::CB_EMITTED] += WRITTEN;
  ring.counters[abi::CB_ENTERED] += WRITTEN;
  inside.shared.abandon();
  InsideCounts counts = inside.shared.counts();
  CHECK(counts.known() - counts.emitted == WRITTEN);
  CHECK(counts.emitted == 1);
  CHECK(counts.entered == WRITTEN + 1);
  CHECK(inside.shared.broken() == 0);
  CHECK(resident(inside.shared.fd()) == before);
  // Nothing is read from then on: its thread has lost records, and it is not known what they
  // were.
  inside.write(2);
  CHECK(read(inside).empty());
}

TEST_CASE("The memory cannot be taken away, and recording ends for all") {
  Inside inside;
  CHECK(ftruncate(inside.shared.fd(), 0) != 0);
  CHECK(inside.head().on == abi::CI_ALL);
  inside.shared.record(abi::CI_NOTHING);
  CHECK(inside.head().on == abi::CI_NOTHING);
  CHECK(inside.shared.is_at_rest());
  inside.take_ring(7);
  inside.ring().counters[abi::CB_ENTERED] = 1;
  CHECK(!inside.shared.is_at_rest());
  inside.ring().counters[abi::CB_DROPPED_RETURN] = 1;
  CHECK(inside.shared.is_at_rest());
  CHECK(inside.shared.counts().dropped[abi::CB_DROPPED_RETURN] == 1);
}

TEST_CASE("A record that is being written does not count yet, and then as others do") {
  Inside inside;
  inside.take_ring(7);
  inside.write(1);
  inside.ring().counters[abi::CB_ENTERED]++;
  CHECK(inside.shared.counts().entered == 1);
  CHECK(inside.shared.counts().emitted == 1);
  CHECK(!inside.shared.is_at_rest());
  inside.ring().counters[abi::CB_EMITTED]++;
  CHECK(inside.shared.counts().entered == 2);
  CHECK(inside.shared.counts().emitted == 2);
}

TEST_CASE("What a process claims to have lost neither wraps nor hides what others lose") {
  constexpr std::uint64_t ALL = ~std::uint64_t{0};
  Inside liar;
  liar.take_ring(7);
  liar.take_ring(8, 1);
  for (std::size_t i = 0; i < abi::CB_COUNTERS; i++)
    liar.head().counters[i] = liar.ring(0).counters[i] = liar.ring(1).counters[i] = ALL;
  InsideCounts before = liar.shared.counts();
  CHECK(before.dropped[abi::CB_DROPPED_ENTRY] > 0);
  CHECK(before.dropped[abi::CB_DROPPED_ENTRY] < 3 * 60'000'000'000ULL);  // it is not a minute old
  CHECK(before.emitted <= 2 * CI_RING_SIZE / sizeof(abi::cb_head));
  CHECK(before.entered >= before.known());
  CHECK(before.entered - before.known() <= 3 * CI_RING_SIZE / sizeof(abi::cb_head));
  // It takes back what it has claimed.
  for (std::size_t i = 0; i < abi::CB_COUNTERS; i++)
    liar.head().counters[i] = liar.ring(0).counters[i] = liar.ring(1).counters[i] = 0;
  InsideCounts after = liar.shared.counts();
  CHECK(after.dropped == before.dropped);
  CHECK(after.entered == after.known());

  InsideCounts sum;
  sum.entered = sum.emitted = ALL - 1;
  sum.dropped.fill(ALL - 1);
  CHECK(sum.known() == ALL);
  InsideCounts twice = sum;
  twice += sum;
  CHECK(twice.entered == ALL);
  CHECK(twice.emitted == ALL);
  CHECK(twice.dropped[abi::CB_DROPPED_NAME] == ALL);
}
