#include "correlate/correlator.hpp"

#include <catch2/catch_test_macros.hpp>

#include "correlating.hpp"

using namespace cudabpf;
using namespace samples;

TEST_CASE("An entry and its return are one call") {
  Correlating c({.begin_ns = 1000});
  c.feed(entry({.ts = 3000, .pid = 7, .tid = 8}, "cuMemAlloc_v2", {0x1, 4096}));
  CHECK(c.sink.calls.empty());
  c.feed(returned({.ts = 3250, .pid = 7, .tid = 8}, "cuMemAlloc_v2", 0, {0x7f00}));
  REQUIRE(c.sink.calls.size() == 1);
  const auto& call = c.last();
  CHECK(call.id == 1);
  CHECK(call.parent == 0);
  CHECK(call.ts == 2000);
  CHECK(call.duration == 250);
  CHECK(call.pid == 7);
  CHECK(call.tid == 8);
  CHECK(call.function == find_function("cuMemAlloc_v2"));
  CHECK(call.has_return);
  CHECK(call.result == 0);
  CHECK(call.own_words == std::vector<std::uint64_t>{1, 4096});
  CHECK(call.own_outs == std::vector<std::uint64_t>{0x7f00});
  CHECK(call.details.ptr == 0x7f00);
  CHECK(call.details.size == 4096);
  CHECK_FALSE(call.has_text);
  CHECK_FALSE(call.unfinished);
  CHECK_FALSE(call.return_lost);
  CHECK_FALSE(call.entry_lost);
  CHECK_FALSE(call.read_fault);
  c.correlator.finish();
  CHECK(c.sink.calls.size() == 1);
  CHECK(c.correlator.counts().calls == 1);
  CHECK(c.correlator.counts().unfinished == 0);
  CHECK(c.correlator.bad_records() == 0);
}

TEST_CASE("A call that is said to return before it began takes no time") {
  Correlating c({.begin_ns = 1000});
  c.feed(entry({.ts = 3000}, "cuCtxSynchronize"));
  c.feed(returned({.ts = 2999}, "cuCtxSynchronize"));
  CHECK(c.last().ts == 2000);
  CHECK(c.last().has_return);
  CHECK(c.last().duration == 0);
}

TEST_CASE("What faulted or was cut is reported, at entry and at return") {
  Correlating c;
  c.feed(entry({.flags = abi::CB_READ_FAULT}, "cuModuleLoad", {1, 2}));
  c.feed(returned({}, "cuModuleLoad"));
  CHECK(c.last().read_fault);
  c.feed(entry({}, "cuModuleLoad", {1, 2}, {}, "a.cubin"));
  c.feed(returned({.flags = abi::CB_READ_FAULT}, "cuModuleLoad"));
  CHECK(c.last().read_fault);
  CHECK(c.last().own_text == "a.cubin");
  CHECK_FALSE(c.last().string_cut);
  c.feed(entry({.flags = abi::CB_STRING_CUT}, "cuModuleLoad", {1, 2}, {}, "a"));
  c.feed(returned({}, "cuModuleLoad", 301));
  CHECK(c.last().string_cut);
  CHECK_FALSE(c.last().read_fault);
  CHECK(c.last().result == 301);
}

TEST_CASE("Calls nest, also in themselves, and in each thread apart") {
  Correlating c;
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
  c.feed(entry({.ts = 11, .tid = 101, .sp = 0x800}, "cuInit", {0}));
  c.feed(entry({.ts = 20, .sp = 0xf00}, "cuInit", {0}));
  c.feed(entry({.ts = 30, .sp = 0xe00}, "cuCtxSynchronize"));
  c.feed(returned({.ts = 35, .sp = 0xe00}, "cuCtxSynchronize"));
  c.feed(returned({.ts = 40, .sp = 0xf00}, "cuInit"));
  c.feed(returned({.ts = 45, .tid = 101, .sp = 0x800}, "cuInit"));
  c.feed(entry({.ts = 50, .sp = 0xf00}, "cuInit", {0}));
  c.feed(returned({.ts = 60, .sp = 0xf00}, "cuInit"));
  c.feed(returned({.ts = 90, .sp = 0x1000}, "cuInit"));
  CHECK(c.calls() ==
        "4 cuCtxSynchronize in 3 took 5\n"
        "3 cuInit in 1 took 20\n"
        "2 cuInit took 34\n"
        "5 cuInit in 1 took 10\n"
        "1 cuInit took 80\n");
}

TEST_CASE("Functions recorded at entry alone have neither result nor duration") {
  Correlating c({.entry_only = [](const Function& f) { return f.launches_kernel(); }});
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuCtxSynchronize"));
  c.feed(entry({.ts = 20, .sp = 0xf00}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  c.feed(entry({.ts = 30, .sp = 0xf00}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  c.feed(returned({.ts = 60, .sp = 0x1000}, "cuCtxSynchronize"));
  CHECK(c.calls() ==
        "2 cuLaunchKernel in 1\n"
        "3 cuLaunchKernel in 1\n"
        "1 cuCtxSynchronize took 50\n");
}

TEST_CASE("A function that ends in a jump to another: both return, the second first") {
  Correlating c;
  for (int i = 0; i < 2; i++) {
    c.feed(entry({.ts = 10}, "cuMemAlloc_v2", {1, 64}));
    c.feed(entry({.ts = 11}, "cuMemAllocAsync", {1, 64, 0}));
    c.feed(returned({.ts = 20}, "cuMemAllocAsync", 0, {1}));
    c.feed(returned({.ts = 21}, "cuMemAlloc_v2", 0, {1}));
  }
  CHECK(c.calls() ==
        "2 cuMemAllocAsync in 1 took 9\n1 cuMemAlloc_v2 took 11\n"
        "4 cuMemAllocAsync in 3 took 9\n3 cuMemAlloc_v2 took 11\n");
  // A library with the same interface, in front of the driver's: the same function twice.
  c.feed(entry({.ts = 30}, "cuInit", {0}));
  c.feed(entry({.ts = 31}, "cuInit", {0}));
  c.feed(returned({.ts = 40}, "cuInit"));
  c.feed(returned({.ts = 42}, "cuInit"));
  CHECK(c.calls().ends_with("6 cuInit in 5 took 9\n5 cuInit took 12\n"));
}

TEST_CASE("Fibers call from stacks of their own, one call after another") {
  Correlating c;
  for (std::uint32_t sp : {0x80000000u, 0x10000000u, 0xf0000000u, 0x7fffffffu, 0x10000000u}) {
    c.feed(entry({.ts = 10, .sp = sp}, "cuInit", {0}));
    c.feed(returned({.ts = 15, .sp = sp}, "cuInit"));
    CHECK(c.last().parent == 0);
    CHECK(c.last().duration == 5);
  }
}

TEST_CASE("A call on another stack in the middle of one is neither its child nor its end") {
  Correlating c;
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuCtxSynchronize"));
  c.feed(entry({.ts = 20, .sp = 0x9000}, "cuInit", {0}));
  c.feed(returned({.ts = 25, .sp = 0x9000}, "cuInit"));
  c.feed(returned({.ts = 90, .sp = 0x1000}, "cuCtxSynchronize"));
  CHECK(c.calls() == "2 cuInit took 5\n1 cuCtxSynchronize took 80\n");
}

TEST_CASE("Calls of a signal's handler on a stack of its own are whole, and so is the one inside") {
  Correlating c;
  for (std::uint64_t i = 0; i < 100; i++) {
    std::uint64_t ts = 1000 * i;
    c.feed(entry({.ts = ts, .sp = 0x1000}, "cuCtxSynchronize"));
    c.feed(entry({.ts = ts + 10, .sp = 0x9000}, "cuCtxSynchronize"));
    c.feed(returned({.ts = ts + 20, .sp = 0x9000}, "cuCtxSynchronize"));
    c.feed(returned({.ts = ts + 30, .sp = 0x1000}, "cuCtxSynchronize"));
  }
  REQUIRE(c.sink.calls.size() == 200);
  for (const auto& call : c.sink.calls) {
    CHECK(call.duration == (call.id % 2 ? 30 : 10));
    CHECK(call.has_return);
    CHECK(call.parent == 0);
  }
}

TEST_CASE("A call whose return would kill has none, and the call that it interrupts is whole") {
  Correlating c;
  c.feed(entry({.ts = 0, .sp = 0x1000}, "cuCtxSynchronize"));
  c.feed(entry({.ts = 10, .sp = 0x9000, .flags = abi::CB_RETURN_UNSEEN}, "cuCtxSynchronize"));
  REQUIRE(c.sink.calls.size() == 1);
  CHECK(c.last().return_lost);
  CHECK_FALSE(c.last().has_return);
  c.feed(returned({.ts = 30, .sp = 0x1000}, "cuCtxSynchronize"));
  REQUIRE(c.sink.calls.size() == 2);
  CHECK(c.last().duration == 30);
}

TEST_CASE("A return that was not wanted is not said to be lost where it would kill") {
  Correlating c({.entry_only = [](const Function& f) { return f.launches_kernel(); }});
  c.feed(entry({.sp = 0x9000, .flags = abi::CB_RETURN_UNSEEN}, "cuLaunchKernel", {0}));
  REQUIRE(c.sink.calls.size() == 1);
  CHECK_FALSE(c.last().return_lost);
}

TEST_CASE("Calls that never return do not take all memory") {
  SECTION("deeper and deeper") {
    Correlating c;
    for (std::uint32_t i = 0; i < 1000; i++)
      c.feed(entry({.ts = i, .sp = 0x8000'0000 - 16 * i}, "cuInit", {0}));
    CHECK(c.sink.calls.size() == 960);
    CHECK(c.last().return_lost);
    CHECK(c.correlator.bounds().all_left_out(Kept::open_calls) == 960);
    for (std::uint32_t i = 999; i + 1 > 960; i--)
      c.feed(returned({.ts = 2000, .sp = 0x8000'0000 - 16 * i}, "cuInit"));
    CHECK(c.last().has_return);
  }
  SECTION("in more and more threads") {
    Limits limits;
    limits.of(Kept::threads) = 100;
    Correlating c({.limits = limits});
    for (std::uint32_t i = 0; i < 101; i++)
      c.feed(entry({.ts = i, .tid = 1000 + i}, "cuInit", {0}));
    CHECK(c.sink.calls.size() == 100);
    CHECK(c.correlator.bounds().all_left_out(Kept::threads) == 100);
    // Those outside any call are dropped without a loss.
    for (std::uint32_t i = 0; i < 1000; i++) c.call({.ts = 500, .tid = 5000 + i}, "cuInit", {0});
    CHECK(c.sink.calls.size() == 1100);
    CHECK(c.correlator.bounds().all_left_out(Kept::threads) == 100);
    CHECK(c.last().has_return);
    c.feed(returned({.ts = 600, .tid = 1100}, "cuInit"));
    CHECK(c.last().has_return);
  }
}

TEST_CASE("Numbers that no probe has are counted, and change nothing") {
  Correlating c;
  c.feed(entry({}, std::uint16_t{60000}, {1}));
  c.feed(returned({}, std::uint16_t{60000}));
  c.correlator.finish();
  CHECK(c.correlator.bad_records() == 2);
  CHECK(c.sink.calls.empty());
  CHECK(c.sink.processes.empty());
}
