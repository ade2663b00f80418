#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "collect/inside/process_records.hpp"
#include "collect/inside/traced_rings.hpp"
#include "support/inside_rings.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;

namespace {

// A process whose three rings of 64 MiB are full.
class Hoarding {
 public:
  Hoarding() {
    for (std::size_t ring = 0; ring < RINGS; ring++) {
      inside.take_ring(pid, ring);
      for (std::uint64_t i = 0; i < EACH; i++) inside.write(begun + i, SIZE, ring);
    }
    traced.add(newcomer(inside));
  }
  Newcomer newcomer(Inside& shared) const {
    Newcomer newcomer;
    newcomer.record = process_record(abi::CB_EXEC, getpid(), now_ns(CLOCK_MONOTONIC));
    newcomer.inner_pid = pid;
    newcomer.shared = shared.owner;
    return newcomer;
  }
  TracedRings::OnRecord keep() {
    return [this](std::span<const std::byte> record) {
      abi::cb_head head;
      std::memcpy(&head, record.data(), sizeof(head));
      kinds.push_back(head.kind);
      bytes += record.size();
    };
  }
  // The reader does not get more than a part at once.
  Source::Polled read() {
    bytes = 0;
    Source::Polled polled = traced.read(keep());
    CHECK(bytes < 5 << 20);
    return polled;
  }
  std::size_t count(abi::cb_kind kind) const {
    return static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), kind));
  }

  static constexpr std::size_t RINGS = 3;
  static constexpr std::uint32_t SIZE = 4088;
  static constexpr std::uint64_t EACH = (64 << 20) / (SIZE + 8);
  const std::uint32_t pid = static_cast<std::uint32_t>(getpid());
  const std::uint64_t begun = now_ns(CLOCK_MONOTONIC) - 1'000'000'000;
  Inside inside{64 << 20};
  TracedRings traced{true, abi::CI_MONOTONIC};
  std::vector<std::uint8_t> kinds;
  std::size_t bytes = 0;
};

}  // namespace

TEST_CASE("What a process leaves in its rings is read to its end, in many parts") {
  Hoarding process;
  std::size_t most = 100;
  SECTION("when it says that it ends") {
    process.traced.leave(process.pid);
    for (; process.count(abi::CB_EXIT) == 0 && most > 0; most--) process.read();
    CHECK(process.count(abi::CB_EXEC) == 1);
    CHECK(process.kinds.back() == abi::CB_EXIT);
  }
  SECTION("when another program takes its place") {
    Inside next;
    next.take_ring(process.pid);
    Newcomer newcomer = process.newcomer(next);
    std::uint64_t came = newcomer.record.head.ts;
    next.write(came + 1);
    process.read();  // the old program begins
    process.traced.add(std::move(newcomer));
    for (; process.count(abi::CB_EXEC) < 2 && most > 0; most--) {
      Source::Polled polled = process.read();
      CHECK(polled.unfinished);
      CHECK(polled.until <= came);  // it has not been reported yet
    }
    CHECK(process.kinds.back() == abi::CB_EXEC);  // after all that the old program has done
    CHECK_FALSE(process.read().unfinished);
    CHECK(process.kinds.back() == abi::CB_ENTRY);
    CHECK(process.count(abi::CB_ENTRY) == Hoarding::RINGS * Hoarding::EACH + 1);
    process.kinds.pop_back();
  }
  CHECK(process.count(abi::CB_ENTRY) == Hoarding::RINGS * Hoarding::EACH);
  InsideCounts counts = process.traced.counts();
  CHECK(counts.known() == counts.emitted);
  CHECK(process.traced.audit(false).empty());
}

TEST_CASE("What others write into the rings of a process that has ended is not read") {
  Hoarding process;
  process.traced.leave(process.pid);
  // The process that has its memory fills its rings whenever they were read.
  auto refill = [&] {
    for (std::size_t ring = 0; ring < Hoarding::RINGS; ring++)
      process.inside.ring(ring).head = process.inside.ring(ring).tail + (64 << 20);
  };
  for (std::size_t reads = 0; process.count(abi::CB_EXIT) == 0 && reads < 100; reads++) {
    process.read();
    refill();
  }
  CHECK(process.count(abi::CB_EXIT) == 1);
  CHECK(process.count(abi::CB_ENTRY) == Hoarding::RINGS * Hoarding::EACH);
}
