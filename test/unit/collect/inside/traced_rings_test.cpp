#include "collect/inside/traced_rings.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/inside/process_records.hpp"
#include "support/inside_rings.hpp"
#include "util/system/clock.hpp"
#include "util/system/procfs.hpp"

using namespace cudabpf;

namespace {

// What is reported of processes whose shared memory makes no sense.
std::vector<std::string> details(TracedRings& traced, std::string_view reason, bool last = false) {
  std::vector<std::string> found;
  for (const LossEvent& loss : traced.audit(last)) {
    CHECK(info(loss.reason).name == reason);
    CHECK_FALSE(loss.count);
    found.push_back(loss.detail);
  }
  return found;
}

// The name there of a process with this name.
std::string of_this_process(std::string_view what) {
  std::string comm = Procfs().process(getpid()).comm;
  return fmt::format("pid {} ({}): {}", getpid(), comm, what);
}

constexpr auto NO_FIT = "what it has counted does not fit the records that it wrote";
constexpr auto BROKEN = "the records of 1 of its threads made no sense from some point on";
using Found = std::vector<std::string>;

// A process that ends, and what is reported of it.
class Ending {
 public:
  Ending() {
    Newcomer newcomer;
    newcomer.record = process_record(abi::CB_EXEC, getpid(), now());
    newcomer.inner_pid = newcomer.record.head.pid;
    newcomer.shared = inside.owner;
    traced.add(std::move(newcomer));
    inside.take_ring(7);
  }
  static std::uint64_t now() { return now_ns(CLOCK_MONOTONIC); }

  void end() {
    auto count = [this](auto) { reported++; };
    traced.leave(static_cast<std::uint32_t>(getpid()));
    while (traced.read(count).unfinished) {
    }
    counts = traced.counts();
    CHECK(counts.entered == counts.known());
    CHECK(counts.emitted == reported);
  }
  std::uint64_t dropped() const { return counts.known() - counts.emitted; }
  std::vector<std::string> found() { return details(traced, "process_inconsistent"); }

  Inside inside;
  TracedRings traced{false, abi::CI_MONOTONIC};
  InsideCounts counts;
  std::uint64_t reported = 0;
};

}  // namespace

namespace {

// A process that lives on, with rings whose records say which ring they are of.
class Living {
 public:
  Living() {
    Newcomer newcomer;
    newcomer.record = process_record(abi::CB_EXEC, getpid(), now_ns(CLOCK_MONOTONIC));
    newcomer.inner_pid = pid;
    newcomer.shared = inside.owner;
    traced.add(std::move(newcomer));
  }
  // The thread of the record that comes from the ring now.
  std::uint32_t tid_of_next(std::size_t ring = 0) {
    inside.write(now_ns(CLOCK_MONOTONIC), sizeof(abi::cb_head), ring);
    std::vector<abi::cb_head> heads;
    read(&heads);
    REQUIRE(heads.size() == 1);
    CHECK(heads[0].pid == pid);
    return heads[0].tid;
  }
  void read(std::vector<abi::cb_head>* heads = nullptr) {
    traced.read([&](std::span<const std::byte> record) {
      abi::cb_head head;
      std::memcpy(&head, record.data(), sizeof(head));
      if (heads) heads->push_back(head);
    });
  }

  const std::uint32_t pid = static_cast<std::uint32_t>(getpid());
  Inside inside;
  TracedRings traced{false, abi::CI_MONOTONIC};
};

// Another process.
class Neighbour {
 public:
  Neighbour() : pid(fork()) {
    if (pid == 0) {
      pause();
      _exit(0);
    }
  }
  ~Neighbour() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  const pid_t pid;
};

constexpr std::uint32_t UNKNOWN_THREAD = 1 << 30;

}  // namespace

TEST_CASE("A ring is no other process's thread's, whatever it says") {
  Living process;
  Neighbour neighbour;
  process.inside.take_ring(static_cast<std::uint32_t>(neighbour.pid));
  process.inside.take_ring(process.pid, 1);
  process.inside.take_ring(UNKNOWN_THREAD + 5, 2);
  CHECK(process.tid_of_next() == UNKNOWN_THREAD);
  CHECK(process.tid_of_next(1) == process.pid);
  CHECK(process.tid_of_next(2) == UNKNOWN_THREAD + 2);
}

TEST_CASE("A thread that has ended before its records were read keeps its id") {
  Living process;
  std::uint32_t ended = 0;
  {
    Neighbour neighbour;
    ended = static_cast<std::uint32_t>(neighbour.pid);
  }
  process.inside.take_ring(ended);
  CHECK(process.tid_of_next() == ended);
}

TEST_CASE("A ring is one thread's until it is given back") {
  Living process;
  process.inside.take_ring(process.pid);
  CHECK(process.tid_of_next() == process.pid);
  process.inside.ring().tid = 7;
  CHECK(process.tid_of_next() == process.pid);
  process.inside.ring().state = abi::CI_LEFT;
  process.read();
  REQUIRE(process.inside.ring().state == abi::CI_FREE);
  process.inside.take_ring(process.pid + 1'000'000'000);
  process.inside.ring().state = abi::CI_USED;
  CHECK(process.tid_of_next() == process.pid + 1'000'000'000);
}

TEST_CASE("A process that takes and leaves rings all the time is not looked up each time") {
  Living process;
  constexpr std::uint64_t LOOKS = ThreadIds::MAX_WORK / ThreadIds::LOOK;
  constexpr std::uint64_t TIMES = 2 * LOOKS / CI_RINGS;
  std::uint64_t begun = now_ns(CLOCK_MONOTONIC), nobodys = 0;
  for (std::uint64_t time = 0; time < TIMES; time++) {
    for (std::size_t ring = 0; ring < CI_RINGS; ring++) {
      process.inside.take_ring(1 << 29, ring);  // there is no such thread
      process.inside.write(now_ns(CLOCK_MONOTONIC), sizeof(abi::cb_head), ring);
      process.inside.ring(ring).state = abi::CI_LEFT;
    }
    std::vector<abi::cb_head> heads;
    process.read(&heads);
    REQUIRE(heads.size() == CI_RINGS);
    for (const abi::cb_head& head : heads) nobodys += head.tid != 1 << 29;
  }
  std::uint64_t seconds = (now_ns(CLOCK_MONOTONIC) - begun) / 1'000'000'000 + 1;
  CHECK(process.traced.threads_not_looked_up() == nobodys);
  CHECK(TIMES * CI_RINGS - nobodys <= (seconds + 1) * LOOKS);
}

TEST_CASE("What processes keep in their rings is handed over a part at a time, in its order") {
  Living process;
  constexpr std::uint64_t EACH = 20'000;
  constexpr std::uint32_t SIZE = 40;
  process.inside.take_ring(process.pid);
  std::uint64_t now = now_ns(CLOCK_MONOTONIC) - 1'000'000'000;
  for (std::size_t ring = 0; ring < 10; ring++) {
    process.inside.take_ring(process.pid, ring);
    for (std::uint64_t i = 0; i < EACH; i++) process.inside.write(now + 10 * i + ring, SIZE, ring);
  }
  std::vector<std::uint64_t> times;
  auto keep = [&](std::span<const std::byte> record) {
    abi::cb_head head;
    std::memcpy(&head, record.data(), sizeof(head));
    times.push_back(head.ts);
  };
  Source::Polled polled = process.traced.read(keep);
  CHECK(polled.unfinished);
  CHECK(polled.much);
  CHECK(polled.until == times.back() + 1);
  std::size_t first = times.size();
  CHECK(first < 120'000);
  SECTION("to its end") {
    // What is written meanwhile waits, so that no process can go on for ever.
    process.inside.write(now, SIZE);
    while (process.traced.read(keep).unfinished) {
    }
    CHECK(times.size() == 10 * EACH);
    CHECK(std::is_sorted(times.begin(), times.end()));
    CHECK_FALSE(process.traced.read(keep).unfinished);
    CHECK(times.size() == 10 * EACH + 1);
    CHECK(process.traced.counts().emitted == 10 * EACH + 1);
  }
  SECTION("or is given up, and counted as lost") {
    process.traced.abandon();
    CHECK_FALSE(process.traced.read(keep).unfinished);
    CHECK(times.size() == first);
    InsideCounts counts = process.traced.counts();
    CHECK(counts.entered == 10 * EACH);
    CHECK(counts.emitted == first);
    CHECK(counts.unread == 10 * EACH - first);
    CHECK(counts.known() == 10 * EACH);
  }
  CHECK(details(process.traced, "", true).empty());
}

TEST_CASE("What a thread has lost is what its own process says") {
  Living process;
  process.inside.take_ring(process.pid);
  process.read();
  process.inside.ring().drops = 3;
  CHECK(process.traced.drops({process.pid, process.pid}) == 3);
  CHECK(process.traced.drops({process.pid + 1, process.pid}) == 0);
}

TEST_CASE("A process that is killed in the midst of a record has lost none") {
  Ending process;
  process.inside.write(Ending::now());
  SECTION("while it writes") { process.inside.ring().counters[abi::CB_ENTERED]++; }
  SECTION("before it has counted what it wrote") {
    process.inside.ring().counters[abi::CB_EMITTED]--;
  }
  process.end();
  CHECK(process.reported == 1);
  CHECK(process.dropped() == 0);
  CHECK(process.found().empty());
}

TEST_CASE("What was lost in a process that has ended stays lost") {
  Ending process;
  process.inside.write(Ending::now());
  process.inside.ring().counters[abi::CB_ENTERED]++;
  process.inside.ring().counters[abi::CB_DROPPED_RETURN]++;
  process.inside.take_ring(8, 1);
  process.inside.ring(1).counters[abi::CB_ENTERED]++;
  process.end();
  CHECK(process.reported == 1);
  CHECK(process.counts.dropped[abi::CB_DROPPED_RETURN] == 1);
  CHECK(process.dropped() == 1);
  CHECK(process.found().empty());
}

TEST_CASE("Counters of a process that has ended and that cannot be right are said to be wrong") {
  Ending process;
  process.inside.write(Ending::now());
  process.inside.ring().counters[abi::CB_ENTERED] += 2;
  process.end();
  CHECK(process.reported == 1);
  CHECK(process.dropped() == 0);
  CHECK(process.found() == Found{of_this_process(NO_FIT)});
  CHECK(process.found().empty());
}

TEST_CASE("A record of the future that a process has left behind is not lost without a word") {
  Ending process;
  process.inside.write(Ending::now());
  process.inside.write(Ending::now() + 500'000'000);
  process.end();
  CHECK(process.reported == 1);
  CHECK(process.found() == Found{of_this_process(BROKEN)});
}

TEST_CASE("Books that are open at the trace's end are closed, and must fit") {
  Living process;
  process.inside.take_ring(process.pid);
  for (int i = 0; i < 3; i++) process.inside.write(now_ns(CLOCK_MONOTONIC));
  process.read();
  abi::ci_ring& ring = process.inside.ring();
  Found found;
  SECTION("they do") { ring.counters[abi::CB_DROPPED_RETURN]++, ring.counters[abi::CB_ENTERED]++; }
  SECTION("except for a record that is under way for ever") { ring.counters[abi::CB_ENTERED]++; }
  SECTION("and for one that was written last of all") { process.inside.write(1); }
  SECTION("more records are claimed than were written") {
    ring.counters[abi::CB_EMITTED] += 2;
    ring.counters[abi::CB_ENTERED] += 2;
    found = {of_this_process(NO_FIT)};
  }
  SECTION("records were written that are not counted") {
    ring.counters[abi::CB_EMITTED] = ring.counters[abi::CB_ENTERED] = 0;
    found = {of_this_process(NO_FIT)};
  }
  SECTION("calls were begun of which nothing became") {
    ring.counters[abi::CB_ENTERED] += 2;
    found = {of_this_process(NO_FIT)};
  }
  SECTION("more was lost than there can have been") {
    ring.counters[abi::CB_ENTERED] = ring.counters[abi::CB_DROPPED_ENTRY] = ~std::uint64_t{0};
    found = {of_this_process(NO_FIT)};
  }
  SECTION("what was lost is taken back") {
    ring.counters[abi::CB_DROPPED_ENTRY] = 5;
    CHECK(process.traced.counts().dropped[abi::CB_DROPPED_ENTRY] == 5);
    ring.counters[abi::CB_DROPPED_ENTRY] = 0;
    found = {of_this_process(NO_FIT)};
  }
  SECTION("threads without a ring have written") {
    process.inside.head().counters[abi::CB_EMITTED] = 1;
    found = {of_this_process(NO_FIT)};
  }
  CHECK(details(process.traced, "process_inconsistent").empty());  // it may be changing
  CHECK(details(process.traced, "process_inconsistent", true) == found);
  InsideCounts counts = process.traced.counts();
  CHECK(counts.emitted == 3);
  CHECK(counts.entered == counts.known());
}

TEST_CASE("A ring that makes no sense is reported at once, with its process, and once") {
  Living process;
  process.inside.take_ring(process.pid);
  process.inside.write(now_ns(CLOCK_MONOTONIC));
  process.inside.ring().head += 4;
  process.read();
  CHECK(details(process.traced, "process_inconsistent") == Found{of_this_process(BROKEN)});
  process.read();
  CHECK(details(process.traced, "process_inconsistent").empty());
  CHECK(details(process.traced, "process_inconsistent", true).empty());
}
