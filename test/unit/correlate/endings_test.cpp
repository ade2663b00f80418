// What ends before its calls have returned: threads, processes, programs, the trace.
#include <catch2/catch_test_macros.hpp>

#include "correlating.hpp"

using namespace cudabpf;
using namespace samples;

TEST_CASE("What is open when a thread, a process or the trace ends is unfinished") {
  Correlating c;
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
  c.feed(entry({.ts = 20, .sp = 0xf00}, "cuCtxSynchronize"));
  c.feed(entry({.ts = 10, .tid = 101}, "cuInit", {0}));
  c.feed(entry({.ts = 10, .pid = 200, .tid = 200}, "cuInit", {0}));
  SECTION("the thread") {
    c.feed(thread_exit({.ts = 99}));
    CHECK(c.calls() == "2 cuCtxSynchronize in 1 unfinished\n1 cuInit unfinished\n");
    c.feed(thread_exit({.ts = 99, .tid = 555}));  // one that never made a call
    CHECK(c.sink.calls.size() == 2);
    // Its id is used again by the same process, with a stack at the same place.
    c.feed(entry({.ts = 200, .sp = 0x1000}, "cuInit", {0}));
    c.feed(returned({.ts = 203, .sp = 0x1000}, "cuInit"));
    CHECK(c.last().duration == 3);
  }
  SECTION("the process") {
    c.feed(process({.ts = 99}, abi::CB_EXIT));
    CHECK(c.calls() ==
          "2 cuCtxSynchronize in 1 unfinished\n1 cuInit unfinished\n3 cuInit unfinished\n");
  }
  SECTION("the program, by an exec from any thread") {
    c.feed(process({.ts = 99}, abi::CB_EXEC));
    CHECK(c.calls() ==
          "2 cuCtxSynchronize in 1 unfinished\n1 cuInit unfinished\n3 cuInit unfinished\n");
  }
  SECTION("the trace") {
    c.correlator.finish();
    CHECK(c.calls() ==
          "2 cuCtxSynchronize in 1 unfinished\n1 cuInit unfinished\n3 cuInit unfinished\n"
          "4 cuInit unfinished\n");
    CHECK(c.correlator.counts().unfinished == 4);
    c.correlator.finish();
    CHECK(c.sink.calls.size() == 4);
  }
  for (const auto& call : c.sink.calls)
    if (call.unfinished) CHECK_FALSE(call.has_return);
}

TEST_CASE("Calls that are open are known, those that may have ended are not among them") {
  std::uint32_t drops = 0;
  Correlator::Options options;
  options.drops_of = [&drops](ThreadId thread) { return thread.tid == 101 ? drops : 0; };
  Correlating c(std::move(options));
  auto open = [&c](std::uint64_t until) {
    std::string text;
    c.correlator.each_open(until, [&text](const Call& call, std::uint64_t open_ns) {
      CHECK(call.unfinished);
      CHECK_FALSE(call.has_return);
      text += std::to_string(call.id) + " " + std::string(call.function->symbol) + " of " +
              std::to_string(call.tid) + " for " + std::to_string(open_ns) + "\n";
    });
    return text;
  };
  CHECK(open(99).empty());
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
  c.feed(entry({.ts = 20, .sp = 0xf00}, "cuCtxSynchronize"));
  c.feed(entry({.ts = 30, .tid = 101, .sp = 0x1000}, "cuInit", {0}));
  CHECK(open(50) ==
        "1 cuInit of 100 for 40\n2 cuCtxSynchronize of 100 for 30\n"
        "3 cuInit of 101 for 20\n");
  CHECK(open(15) ==
        "1 cuInit of 100 for 5\n2 cuCtxSynchronize of 100 for 0\n"
        "3 cuInit of 101 for 0\n");
  drops = 1;  // its return may be among what was lost
  CHECK(open(50) == "1 cuInit of 100 for 40\n2 cuCtxSynchronize of 100 for 30\n");
  c.feed(returned({.ts = 60, .sp = 0xf00}, "cuCtxSynchronize"));
  CHECK(open(70) == "1 cuInit of 100 for 60\n");
  c.feed(entry({.ts = 80, .sp = 0x1100}, "cuCtxSynchronize"));  // longjmp may have left the first
  CHECK(open(90) == "4 cuCtxSynchronize of 100 for 10\n");
  CHECK(c.calls() == "2 cuCtxSynchronize in 1 took 40\n");
}

TEST_CASE("What begins after the trace was stopped is not in it") {
  Correlating c;
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
  c.feed(entry({.ts = 10, .tid = 101}, "cuInit", {0}));
  c.correlator.stop_at(99);
  c.feed(entry({.ts = 99, .sp = 0xf00}, "cuCtxSynchronize"));  // was on its way
  c.feed(returned({.ts = 110, .sp = 0xf00}, "cuCtxSynchronize"));
  c.feed(entry({.ts = 100, .sp = 0xf00}, "cuCtxGetDevice", {0}));
  c.feed(returned({.ts = 111, .sp = 0xf00}, "cuCtxGetDevice"));
  c.feed(returned({.ts = 112, .tid = 102}, "cuCtxGetDevice"));  // its entry was not seen
  c.feed(process({.ts = 113, .pid = 200, .tid = 200}, abi::CB_FORK));
  c.feed(returned({.ts = 120, .sp = 0x1000}, "cuInit"));
  c.correlator.finish();
  CHECK(c.calls() == "3 cuCtxSynchronize in 1 took 11\n1 cuInit took 110\n2 cuInit unfinished\n");
  CHECK_FALSE(c.correlator.processes().known(200));
}

TEST_CASE("Ids that are used again after an exit was not seen belong to the new owner") {
  Correlating c;
  SECTION("a thread's, in another process") {
    c.feed(entry({.ts = 10, .pid = 100, .tid = 300}, "cuInit", {0}));
    c.feed(entry({.ts = 20, .pid = 200, .tid = 300}, "cuInit", {0}));
    c.feed(returned({.ts = 25, .pid = 200, .tid = 300}, "cuInit"));
    c.feed(process({.ts = 50}, abi::CB_EXIT));
    CHECK(c.calls() == "2 cuInit took 5\n1 cuInit unfinished\n");
    CHECK(c.sink.calls[0].pid == 200);
    CHECK(c.sink.calls[1].pid == 100);
  }
  SECTION("a process's") {
    c.feed(entry({.ts = 10}, "cuInit", {0}));
    c.call({.ts = 20, .tid = 101}, "cuModuleGetFunction", {1, 2, 3}, {0x5500}, 0, "kern");
    c.call({.ts = 20, .tid = 101}, "cuMemAlloc_v2", {1, 64}, {0x7000});
    c.feed(process({.ts = 50}, abi::CB_FORK));
    CHECK(c.last().unfinished);
    c.call({.ts = 60}, "cuLaunchKernel", {0x5500, 1, 1, 1, 1, 1, 1, 0, 0});
    CHECK(c.last().kernel == nullptr);
    c.call({.ts = 60}, "cuMemFree_v2", {0x7000});
    CHECK_FALSE(c.last().details.size);
  }
}

TEST_CASE("A process that says another's thread was its own does that one no harm") {
  Correlating c;
  const Head victim{.ts = 10, .pid = 100, .tid = 101}, liar{.ts = 20, .pid = 200, .tid = 101};
  c.feed(entry(victim, "cuInit", {0}));
  c.feed(driver_begins({.ts = 11, .pid = 100, .tid = 101}, abi::CB_IOCTL, 0, 1));
  SECTION("by a call") { c.call(liar, "cuCtxSynchronize"); }
  SECTION("by records that were lost") {
    c.feed(entry({.ts = 20, .pid = 200, .tid = 101, .drops = 9}, "cuCtxSynchronize"));
  }
  SECTION("by a thread's end") { c.feed(thread_exit(liar)); }
  SECTION("by its own end") {
    c.call(liar, "cuCtxSynchronize");
    c.feed(process({.ts = 30, .pid = 200, .tid = 101}, abi::CB_EXIT));
  }
  SECTION("by an operation of the driver") {
    c.feed(driver_begins(liar, abi::CB_IOCTL, 0, 2));
    c.feed(driver_ends({.ts = 25, .pid = 200, .tid = 101}, abi::CB_IOCTL));
  }
  c.sink.calls.clear();
  c.sink.driver_calls.clear();
  c.feed(driver_ends({.ts = 40, .pid = 100, .tid = 101}, abi::CB_IOCTL));
  c.feed(returned({.ts = 50, .pid = 100, .tid = 101}, "cuInit"));
  CHECK(c.calls() == "1 cuInit took 40\n");
  CHECK(c.last().pid == 100);
  CHECK(c.last().ioctls == 1);
  REQUIRE(c.sink.driver_calls.size() == 1);
  CHECK(c.sink.driver_calls[0].pid == 100);
  CHECK(c.sink.driver_calls[0].call == 1);
  CHECK(c.sink.driver_calls[0].duration == 29);
}

TEST_CASE("A process that is gone without its exit being reported is let go") {
  Correlating c;
  c.feed(entry({.ts = 10}, "cuInit", {0}));
  c.feed(entry({.ts = 10, .pid = 200, .tid = 200}, "cuInit", {0}));
  c.call({.ts = 20, .tid = 101}, "cuMemAlloc_v2", {1, 64}, {0x7000});
  c.correlator.forget_process(100);
  CHECK(c.calls() == "3 cuMemAlloc_v2 took 100\n1 cuInit unfinished\n");
  CHECK_FALSE(c.correlator.processes().known(100));
  CHECK(c.correlator.processes().pids() == std::vector<std::uint32_t>{200});
  c.call({.ts = 300}, "cuMemFree_v2", {0x7000});  // of a new process with its pid
  CHECK_FALSE(c.last().details.size);
  CHECK(c.sink.processes.size() == 3);
}

TEST_CASE("A child does not know its parent's handles") {
  Correlating c;
  c.call({.ts = 20}, "cuModuleGetFunction", {1, 2, 3}, {0x5500}, 0, "kern");
  c.feed(process({.ts = 50, .pid = 101, .tid = 101}, abi::CB_FORK));
  c.call({.ts = 60, .pid = 101, .tid = 101}, "cuLaunchKernel", {0x5500, 1, 1, 1, 1, 1, 1, 0, 0});
  CHECK(c.last().kernel == nullptr);
  c.call({.ts = 60}, "cuLaunchKernel", {0x5500, 1, 1, 1, 1, 1, 1, 0, 0});
  REQUIRE(c.last().kernel);
  CHECK(c.last().kernel->full == "kern");
}
