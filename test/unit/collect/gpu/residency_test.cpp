#include "collect/gpu/residency.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

using Kind = ContextSwitch::Kind;
using ByPid = std::map<std::uint32_t, std::uint64_t>;

// A driver that numbers its records.
class Records {
 public:
  explicit Records(std::uint64_t from = 0) : residency(from) {}

  void add(std::uint64_t time, Kind kind, std::uint32_t pid, std::uint32_t context = 1) {
    residency.add({time, kind, next_++, pid, context, false});
  }
  void start(std::uint64_t time, std::uint32_t pid) { add(time, Kind::start, pid); }
  void end(std::uint64_t time, std::uint32_t pid) { add(time, Kind::end, pid); }
  void miss(std::uint16_t count) { next_ = static_cast<std::uint16_t>(next_ + count); }
  Residency::Window until(std::uint64_t to) {
    residency.advance(to, [this](std::uint32_t pid) { return pid == ended; });
    return residency.take();
  }

  Residency residency;
  std::uint32_t ended = 0;

 private:
  std::uint16_t next_ = 65'530;  // it wraps around
};

}  // namespace

TEST_CASE("Which processes had the GPU, window by window") {
  Records records(100);
  records.start(150, 7);
  records.end(250, 7);
  records.start(260, 8);
  records.end(300, 8);
  Residency::Window window = records.until(280);
  CHECK(window.from == 100);
  CHECK(window.to == 280);
  CHECK(window.by_pid == ByPid{{7, 100}, {8, 20}});
  CHECK(window.unknown_ns == 50);  // before the first start
  records.start(310, 7);
  window = records.until(1000);
  CHECK(window.from == 280);
  CHECK(window.by_pid == ByPid{{7, 690}, {8, 20}});
  CHECK(window.unknown_ns == 0);
  window = records.until(2000);  // it keeps the GPU while nothing is recorded
  CHECK(window.by_pid == ByPid{{7, 1000}});
  CHECK(records.residency.take_missing() == 0);
}

TEST_CASE("A process may have the GPU in several contexts, one after the other") {
  Records records;
  records.add(10, Kind::start, 7, 1);
  records.add(20, Kind::end, 7, 1);
  records.add(20, Kind::start, 7, 2);
  records.add(35, Kind::end, 7, 2);
  Residency::Window window = records.until(40);
  CHECK(window.by_pid == ByPid{{7, 25}});
  CHECK(window.unknown_ns == 10);
}

TEST_CASE("Without a record no process is known to have the GPU") {
  Records records;
  CHECK(records.until(50).unknown_ns == 50);
  CHECK(records.until(80).unknown_ns == 30);
}

TEST_CASE("From a gap in the numbers until the next record nothing is known") {
  Records records;
  records.start(10, 7);
  records.end(30, 7);
  records.miss(4);
  records.start(50, 8);
  Residency::Window window = records.until(60);
  CHECK(window.by_pid == ByPid{{7, 20}, {8, 10}});
  CHECK(window.unknown_ns == 10 + 20);
  CHECK(records.residency.take_missing() == 4);
  CHECK(records.residency.take_missing() == 0);
  records.miss(1);
  records.end(70, 8);  // of which it is not known whether it had started again
  window = records.until(100);
  CHECK(window.by_pid.empty());
  CHECK(window.unknown_ns == 40);
}

TEST_CASE("What the driver drops is unknown at once, and counted once") {
  Records records;
  records.start(10, 7);
  records.residency.dropped(3);
  Residency::Window window = records.until(40);
  CHECK(window.by_pid.empty());
  CHECK(window.unknown_ns == 40);
  records.miss(5);  // two more were dropped later
  records.start(50, 8);
  window = records.until(60);
  CHECK(window.by_pid == ByPid{{8, 10}});
  CHECK(window.unknown_ns == 10);
  CHECK(records.residency.take_missing() == 5);
}

TEST_CASE("An end without a start, or of another context") {
  Records records;
  records.end(10, 7);
  records.start(20, 7);
  records.add(30, Kind::end, 7, 2);
  Residency::Window window = records.until(40);
  CHECK(window.by_pid.empty());
  CHECK(window.unknown_ns == 40);
  records.start(40, 7);
  records.end(50, 7);
  records.end(60, 7);
  window = records.until(70);
  CHECK(window.by_pid == ByPid{{7, 10}});
  CHECK(window.unknown_ns == 20);  // 50 to 60, in which it must have started, and what follows
}

TEST_CASE("A start while another context has the GPU") {
  Records records;
  records.start(10, 7);
  records.start(30, 8);
  Residency::Window window = records.until(50);
  CHECK(window.by_pid == ByPid{{8, 20}});
  CHECK(window.unknown_ns == 30);
  records.start(60, 8);
  window = records.until(70);
  CHECK(window.by_pid == ByPid{{8, 10}});
  CHECK(window.unknown_ns == 10);
}

TEST_CASE("A time before that of the record before") {
  Records records;
  records.start(10, 7);
  records.end(20, 7);
  records.start(15, 8);
  Residency::Window window = records.until(50);
  CHECK(window.by_pid == ByPid{{7, 10}});
  CHECK(window.unknown_ns == 10 + 30);
}

TEST_CASE(
    "A record that comes after its time was reported says which process has the GPU from now on") {
  Records records;
  CHECK(records.until(100).unknown_ns == 100);
  records.start(90, 7);
  Residency::Window window = records.until(150);
  CHECK(window.by_pid == ByPid{{7, 50}});
  CHECK(window.unknown_ns == 0);
}

TEST_CASE("A time that has not come yet, or cannot come") {
  Records records;
  records.start(200, 7);
  CHECK(records.until(100).unknown_ns == 100);
  CHECK(records.until(250).by_pid == ByPid{{7, 50}});
  records.start(~std::uint64_t{0}, 8);
  records.start(300 + Residency::LATEST_NS + 1, 8);
  CHECK(records.until(300).unknown_ns == 50);
  records.start(310, 9);  // they hold up no others
  CHECK(records.until(320).by_pid == ByPid{{9, 10}});
}

TEST_CASE("Records that do not say which process has the whole GPU") {
  Records records;
  records.start(10, 7);
  records.add(20, Kind::other, 7);
  records.start(30, 7);
  records.residency.add({40, Kind::start, 65'533, 8, 1, true});  // of a part of it
  Residency::Window window = records.until(50);
  CHECK(window.by_pid.empty());
  CHECK(window.unknown_ns == 50);
}

TEST_CASE("A process that has ended does not keep the GPU, though no record says so") {
  Records records;
  records.start(10, 7);
  CHECK(records.until(20).by_pid == ByPid{{7, 10}});
  records.end(25, 7);
  records.start(30, 8);
  records.ended = 7;  // its end is recorded
  CHECK(records.until(40).by_pid == ByPid{{7, 5}, {8, 10}});
  records.ended = 8;
  Residency::Window window = records.until(50);
  CHECK(window.by_pid.empty());
  CHECK(window.unknown_ns == 10);
  records.start(60, 9);
  window = records.until(70);
  CHECK(window.by_pid == ByPid{{9, 10}});
  CHECK(window.unknown_ns == 10);
}
