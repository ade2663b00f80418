#include "sink/triggers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>

#include "support/sample_calls.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t MS = 1'000'000, A_SECOND = 1000 * MS;

std::string launch(Triggers& triggers, std::uint64_t ts, std::uint32_t pid = 7) {
  SampleCall call("cuLaunchKernel");
  call.ts = ts;
  call.pid = pid;
  return triggers.call(call);
}

}  // namespace

TEST_CASE("What fails triggers, and what is usual does not") {
  TriggerRules rules;
  rules.on_error = true;
  Triggers triggers(rules);
  SampleCall call("cuMemAlloc_v2", {1, 2}, {3});
  CHECK(triggers.call(call).empty());
  call.fail(2);
  CHECK(triggers.call(call) == "error");
  call.fail(4);  // the driver has shut down
  CHECK(triggers.call(call).empty());
  CHECK(triggers.gpu_error() == "error");
  Process process;
  process.op = Process::Op::exit;
  process.signal = SIGTERM;
  CHECK(triggers.process(process).empty());
  process.signal = SIGSEGV;
  CHECK(triggers.process(process) == "error");
  CHECK(triggers.time_passed(A_SECOND).empty());
}

TEST_CASE("An Xid alone may be a trigger") {
  TriggerRules rules;
  CHECK_FALSE(rules.any());
  CHECK(Triggers(rules).gpu_error().empty());
  rules.on_xid = true;
  CHECK(rules.any());
  CHECK(Triggers(rules).gpu_error() == "xid");
}

TEST_CASE("A call that takes longer than its class may triggers") {
  TriggerRules rules;
  rules.longest_ns[static_cast<std::size_t>(CallClass::wait)] = 2000;
  CHECK(rules.any());
  Triggers triggers(rules);
  SampleCall wait("cuCtxSynchronize");
  wait.duration = 2000;
  CHECK(triggers.call(wait).empty());
  wait.duration = 2001;
  CHECK(triggers.call(wait) == "wait");
  wait.has_return = false;
  CHECK(triggers.call(wait).empty());
  CHECK(launch(triggers, 0).empty());  // of another class
}

TEST_CASE("A call that is open for longer than its class may triggers, until a dump has it") {
  TriggerRules rules;
  CHECK_FALSE(Triggers(rules).watch_open_calls());
  rules.longest_ns[static_cast<std::size_t>(CallClass::wait)] = 2000;
  Triggers triggers(rules);
  CHECK(triggers.watch_open_calls());
  SampleCall wait("cuCtxSynchronize");
  wait.has_return = false;
  wait.unfinished = true;
  CHECK(triggers.open_call(wait, 2000).empty());
  CHECK(triggers.open_call(wait, 2001) == "wait");
  CHECK(triggers.open_call(SampleCall("cuLaunchKernel"), 2001).empty());  // of another class
  CHECK(triggers.open_call(wait, 3000) == "wait");  // no dump was made of it yet
  triggers.written(wait, 3000);
  CHECK(triggers.open_call(wait, 4000).empty());
  wait.has_return = true;
  wait.unfinished = false;
  wait.duration = 5000;
  CHECK(triggers.call(wait).empty());
  wait.id++;  // the next one
  CHECK(triggers.open_call(wait, 1000).empty());
  triggers.written(wait, 1000);  // by another trigger, before it took too long
  CHECK(triggers.open_call(wait, 4000) == "wait");
  CHECK(triggers.call(wait) == "wait");
}

namespace {

// Waits of a process, of which some are slow.
void waits(Triggers& triggers, std::uint32_t pid, int fast, int slow) {
  SampleCall wait("cuCtxSynchronize");
  wait.pid = pid;
  for (int i = 0; i < fast + slow; i++) {
    wait.duration = i < fast ? 5000 : 5001;
    CHECK(triggers.call(wait).empty());
  }
}

}  // namespace

TEST_CASE("A share of calls that is slow triggers at the end of its window") {
  constexpr std::uint64_t WINDOW = Triggers::SHARE_WINDOW_NS;
  TriggerRules rules;
  rules.slow_shares.push_back({CallClass::wait, "p99", TriggerRules::SHARES / 100, 5000});
  rules.slow_shares.push_back({CallClass::wait, "p99.9", TriggerRules::SHARES / 1000, 5000});
  CHECK(rules.any());
  CHECK_FALSE(Triggers(rules).watch_open_calls());
  Triggers triggers(rules);
  SECTION("More than one in a hundred") {
    waits(triggers, 7, 98, 2);
    CHECK(triggers.time_passed(WINDOW - 1).empty());
    CHECK(triggers.time_passed(WINDOW) == "wait.p99");
    CHECK(triggers.time_passed(2 * WINDOW).empty());
  }
  SECTION("No more than may be") {
    waits(triggers, 7, 99, 1);
    CHECK(triggers.time_passed(WINDOW).empty());
    waits(triggers, 7, 99, 1);  // in the next window
    CHECK(triggers.time_passed(2 * WINDOW).empty());
  }
  SECTION("One in a thousand is too few of the first rule, and too many of the second") {
    waits(triggers, 7, 1098, 2);
    CHECK(triggers.time_passed(WINDOW) == "wait.p99.9");
    waits(triggers, 7, 897, 2);  // too few to say
    CHECK(triggers.time_passed(2 * WINDOW).empty());
  }
  SECTION("Too few calls, of one process and of each") {
    waits(triggers, 7, 0, 99);
    waits(triggers, 8, 0, 99);
    CHECK(triggers.time_passed(WINDOW).empty());
  }
  SECTION("Calls of another class, and calls that have not returned") {
    SampleCall launch("cuLaunchKernel"), open("cuCtxSynchronize");
    open.has_return = false;
    for (int i = 0; i < 200; i++) {
      CHECK(triggers.call(launch).empty());
      CHECK(triggers.call(open).empty());
    }
    CHECK(triggers.time_passed(WINDOW).empty());
  }
  SECTION("There is an end to the processes that are watched, and it is not for good") {
    for (std::uint32_t pid = 1; pid <= Triggers::MAX_PROCESSES; pid++) waits(triggers, pid, 1, 0);
    waits(triggers, 100'000, 0, 200);
    CHECK(triggers.time_passed(WINDOW).empty());
    waits(triggers, 100'000, 0, 200);
    CHECK(triggers.time_passed(2 * WINDOW) == "wait.p99");
  }
}

TEST_CASE("A process that was busy and launches nothing any more triggers once") {
  TriggerRules rules;
  rules.idle_ns = A_SECOND;
  Triggers triggers(rules);
  for (std::uint64_t i = 0; i < Triggers::BUSY_LAUNCHES - 1; i++) launch(triggers, i * MS);
  CHECK(triggers.time_passed(10 * A_SECOND).empty());  // never busy
  for (std::uint64_t i = 0; i < 250; i++) launch(triggers, 20 * A_SECOND + i * 10 * MS);
  constexpr std::uint64_t LAST = 20 * A_SECOND + 2490 * MS;
  CHECK(triggers.time_passed(LAST + A_SECOND).empty());
  CHECK(triggers.time_passed(LAST + A_SECOND + 1) == "idle");
  CHECK(triggers.time_passed(LAST + 5 * A_SECOND).empty());
  launch(triggers, 30 * A_SECOND);  // one launch is not being busy
  CHECK(triggers.time_passed(40 * A_SECOND).empty());

  for (std::uint64_t i = 0; i < 200; i++) launch(triggers, 50 * A_SECOND + i * MS, 8);
  Process ended;
  ended.op = Process::Op::exit;
  ended.pid = 8;
  triggers.process(ended);
  CHECK(triggers.time_passed(60 * A_SECOND).empty());
}

TEST_CASE("There is an end to the processes whose launches are watched") {
  TriggerRules rules;
  rules.idle_ns = A_SECOND;
  Triggers triggers(rules);
  for (std::uint32_t pid = 1; pid <= Triggers::MAX_PROCESSES; pid++) launch(triggers, 0, pid);
  for (std::uint64_t i = 0; i < 200; i++) launch(triggers, i, 100'000);
  CHECK(triggers.time_passed(10 * A_SECOND).empty());
}

TEST_CASE("A rank that is behind triggers once, until it has come") {
  TriggerRules rules;
  rules.behind_ns = 3 * A_SECOND;
  CHECK(rules.any());
  Triggers triggers(rules);
  Communicator first, second;
  first.number = first.pid = 1;
  second.number = second.pid = 2;
  first.identity = second.identity = 0xabc;
  auto enter = [&](const Communicator& of, std::uint64_t sequence) {
    SampleCall call("ncclAllReduce", {1, 2, 3, 7, 0, 0x5e00, 0});
    call.pid = of.pid;
    call.communicator = &of;
    call.sequence = sequence;
    call.ts = sequence * A_SECOND;
    CHECK(triggers.call(call).empty());
  };
  enter(first, 1);
  enter(second, 1);
  enter(first, 2);
  CHECK(triggers.time_passed(5 * A_SECOND).empty());
  CHECK(triggers.time_passed(5 * A_SECOND + 1) == "behind");
  CHECK(triggers.time_passed(6 * A_SECOND).empty());
  enter(second, 2);
  CHECK(triggers.time_passed(7 * A_SECOND).empty());
  enter(first, 3);
  CHECK(triggers.time_passed(7 * A_SECOND) == "behind");
}
