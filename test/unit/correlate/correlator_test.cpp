#include "correlate/correlator.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>
#include <set>

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

TEST_CASE("What faulted or was cut is told, at entry and at return") {
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
  Correlating c({.entry_only = [](const Function& f) { return f.is_launch(); }});
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuCtxSynchronize"));
  c.feed(entry({.ts = 20, .sp = 0xf00}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  c.feed(entry({.ts = 30, .sp = 0xf00}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  c.feed(returned({.ts = 60, .sp = 0x1000}, "cuCtxSynchronize"));
  CHECK(c.calls() ==
        "2 cuLaunchKernel in 1\n"
        "3 cuLaunchKernel in 1\n"
        "1 cuCtxSynchronize took 50\n");
}

TEST_CASE("A lost return") {
  Correlating c;
  SECTION("is noticed at the next call from the same place") {
    c.feed(entry({.ts = 10}, "cuInit", {0}));
    c.feed(entry({.ts = 30, .drops = 1}, "cuInit", {0}));
    c.feed(returned({.ts = 35, .drops = 1}, "cuInit"));
    CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit took 5\n");
  }
  SECTION("or at one from further up") {
    c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
    c.feed(entry({.ts = 20, .sp = 0xf00}, "cuInit", {0}));
    c.feed(entry({.ts = 30, .sp = 0x1100, .drops = 2}, "cuInit", {0}));
    CHECK(c.calls() == "2 cuInit in 1 return_lost\n1 cuInit return_lost\n");
  }
  SECTION("or when the call around it returns, which then may be another") {
    c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
    c.feed(entry({.ts = 20, .sp = 0xf00}, "cuCtxSynchronize"));
    c.feed(returned({.ts = 90, .sp = 0x1000, .drops = 1}, "cuInit"));
    CHECK(c.calls() ==
          "2 cuCtxSynchronize in 1 return_lost\n1 cuInit return_lost\n3 cuInit entry_lost\n");
  }
  SECTION("and a later call deeper down is not said to be inside") {
    c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
    c.feed(entry({.ts = 30, .sp = 0xf00, .drops = 1}, "cuInit", {0}));
    c.feed(returned({.ts = 35, .sp = 0xf00, .drops = 1}, "cuInit"));
    CHECK(c.calls() == "2 cuInit took 5\n");
  }
}

TEST_CASE("A lost entry, or a call that began before the trace") {
  Correlating c;
  c.feed(returned({.ts = 35}, "cuMemAlloc_v2", 0, {0x7f00}));
  CHECK(c.calls() == "1 cuMemAlloc_v2 entry_lost\n");
  CHECK(c.last().ts == 35);
  CHECK(c.last().result == 0);
  CHECK(c.last().own_words.empty());
  CHECK(c.last().details.ptr == 0x7f00);  // what it returned is known
  CHECK_FALSE(c.last().details.size);
  c.feed(returned({.ts = 36}, "cuMemAlloc_v2", 2));
  CHECK(c.last().result == 2);
  CHECK_FALSE(c.last().details.ptr);

  SECTION("ends what was open below it") {
    c.feed(entry({.ts = 40, .sp = 0xf00}, "cuInit", {0}));
    c.feed(returned({.ts = 50, .sp = 0x1000, .drops = 1}, "cuCtxSynchronize"));
    CHECK(c.last().parent == 0);
    c.correlator.finish();
    CHECK(c.calls().ends_with("3 cuInit return_lost\n4 cuCtxSynchronize entry_lost\n"));
  }
  SECTION("and leaves open what is above it, but does not say that it was inside") {
    c.feed(entry({.ts = 40, .sp = 0x1000}, "cuInit", {0}));
    c.feed(returned({.ts = 50, .sp = 0xf00, .drops = 1}, "cuCtxSynchronize"));
    CHECK(c.last().parent == 0);
    c.correlator.finish();
    CHECK(c.calls().ends_with("4 cuCtxSynchronize entry_lost\n3 cuInit unfinished\n"));
  }
}

TEST_CASE("A return and the next entry may both be lost: that is no pair") {
  Correlating c;
  c.feed(entry({.ts = 10}, "cuInit", {0}));
  c.feed(returned({.ts = 1'000'000, .drops = 2}, "cuInit"));
  CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit entry_lost\n");
}

TEST_CASE("longjmp out of a call, then one lost entry: that is no pair either") {
  Correlating c;
  c.feed(entry({.ts = 10}, "cuInit", {0}));
  c.feed(returned({.ts = 1'000'000, .drops = 1}, "cuInit"));
  CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit entry_lost\n");
}

TEST_CASE("longjmp again and again leaves nothing behind") {
  Correlating c;
  for (std::uint64_t i = 0; i < 100; i++) c.feed(entry({.ts = i}, "cuInit", {0}));
  c.feed(returned({.ts = 105}, "cuInit"));
  CHECK(c.sink.calls.size() >= 98);
  for (std::size_t i = 0; i + 1 < c.sink.calls.size(); i++) CHECK(c.sink.calls[i].return_lost);
  CHECK(c.last().duration == 6);
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

TEST_CASE("What begins after the trace was stopped is none of its own") {
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
    CHECK(c.calls() == "1 cuInit unfinished\n2 cuInit took 5\n");
    CHECK(c.sink.calls[0].pid == 100);
    CHECK(c.sink.calls[1].pid == 200);
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

TEST_CASE("A process that is gone without its exit being told is let go") {
  Correlating c;
  c.feed(entry({.ts = 10}, "cuInit", {0}));
  c.feed(entry({.ts = 10, .pid = 200, .tid = 200}, "cuInit", {0}));
  c.call({.ts = 20, .tid = 101}, "cuMemAlloc_v2", {1, 64}, {0x7000});
  c.correlator.forget_processes([](std::uint32_t pid) { return pid == 100; });
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

TEST_CASE("Out-pointers that were not kept are missed where the call's beginning was seen") {
  Correlating c;
  auto lost = returned({.ts = 20}, "cuMemAlloc_v2");
  lost.head().flags = abi::CB_OUT_LOST;
  c.feed(lost);  // of a call that began before there were probes
  REQUIRE(c.sink.calls.size() == 1);
  CHECK(c.last().entry_lost);
  CHECK(c.correlator.outs_missed() == 0);
  c.feed(entry({.ts = 30}, "cuMemAlloc_v2", {0x10, 4096}));
  lost.head().ts = 40;
  c.feed(lost);
  CHECK_FALSE(c.last().entry_lost);
  CHECK(c.correlator.outs_missed() == 1);
}

TEST_CASE("A call whose return was lost does not hang, whatever ended its thread") {
  std::map<std::uint32_t, std::uint32_t> drops;
  Correlating c({.drops_of = [&](std::uint32_t tid) { return drops[tid]; }});
  c.feed(entry({.ts = 10, .tid = 101}, "cuInit", {0}));
  c.feed(entry({.ts = 11, .tid = 102}, "cuInit", {0}));
  SECTION("the thread") {
    c.feed(thread_exit({.ts = 20, .tid = 101, .drops = 1}));
    c.feed(thread_exit({.ts = 21, .tid = 102}));
  }
  SECTION("the process, of which it was the last") {
    c.feed(process({.ts = 20, .tid = 101, .drops = 1}, abi::CB_EXIT));
  }
  SECTION("the process, and its own end was lost") {
    drops[101] = 2;
    c.feed(process({.ts = 20, .tid = 102}, abi::CB_EXIT));
  }
  SECTION("the trace") {
    drops[101] = 1;
    c.correlator.finish();
  }
  CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit unfinished\n");
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

TEST_CASE("A return that nobody wanted is not said to be lost where it would kill") {
  Correlating c({.entry_only = [](const Function& f) { return f.is_launch(); }});
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
    CHECK(c.correlator.bounds().all_left_out(Table::open_calls) == 960);
    for (std::uint32_t i = 999; i + 1 > 960; i--)
      c.feed(returned({.ts = 2000, .sp = 0x8000'0000 - 16 * i}, "cuInit"));
    CHECK(c.last().has_return);
  }
  SECTION("in more and more threads") {
    Limits limits;
    limits.of(Table::threads) = 100;
    Correlating c({.limits = limits});
    for (std::uint32_t i = 0; i < 101; i++)
      c.feed(entry({.ts = i, .tid = 1000 + i}, "cuInit", {0}));
    CHECK(c.sink.calls.size() == 100);
    CHECK(c.correlator.bounds().all_left_out(Table::threads) == 100);
    // Those outside any call are dropped without a loss.
    for (std::uint32_t i = 0; i < 1000; i++) c.call({.ts = 500, .tid = 5000 + i}, "cuInit", {0});
    CHECK(c.sink.calls.size() == 1100);
    CHECK(c.correlator.bounds().all_left_out(Table::threads) == 100);
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

namespace {

// One thread that makes random nested calls, as the kernel side sees it: which records reach the
// ring is decided at random, and each carries the count of those lost before it.
class Thread {
 public:
  struct TrueCall {
    std::uint64_t begin = 0, end = 0, parent = 0;  // parent: its begin; times are unique
    bool entry_seen = false, return_seen = false, left = false;
  };

  Thread(Correlating& c, std::uint32_t seed, double loss, double jumps, double signals = 0)
      : c_(c), random_(seed), loss_(loss), jumps_(jumps), signals_(signals) {}

  void run(int calls) {
    for (left_ = calls; left_ > 0;) call(0x8000'1000, 0);
    for (; depth_;) depth_--;
  }
  const std::map<std::uint64_t, TrueCall>& truth() const { return truth_; }
  std::uint64_t returned_at(std::uint64_t begin) const { return truth_.at(begin).end; }

 private:
  double chance() { return std::uniform_real_distribution<>(0, 1)(random_); }
  bool send(const RecordBytes& record) {
    // Losses come in bursts, as when the ring is full.
    if (burst_ > 0 ? burst_-- > 0 : chance() < loss_) {
      if (burst_ == 0 && chance() < 0.3) burst_ = static_cast<int>(random_() % 6);
      drops_++;
      return false;
    }
    c_.feed(record);
    return true;
  }
  // Returns false if a longjmp left it.
  bool call(std::uint32_t sp, std::uint64_t parent) {
    static constexpr const char* SYMBOLS[] = {"cuInit", "cuCtxSynchronize", "cuStreamSynchronize"};
    const char* symbol = SYMBOLS[random_() % 3];
    left_--;
    std::uint64_t begin = now_++;
    TrueCall& call = truth_[begin];
    call.begin = begin;
    call.parent = parent;
    call.entry_seen = send(entry({.ts = begin, .sp = sp, .drops = drops_}, symbol, {begin, 0}));
    depth_++;
    bool stays = true;
    if (depth_ < 4 && chance() < signals_)
      this->call(0x9000'1000 + 0x1000'0000u * static_cast<unsigned>(depth_), begin);
    while (stays && depth_ < 6 && left_ > 0 && chance() < 0.4)
      stays =
          this->call(sp - 16 * static_cast<unsigned>(1 + random_() % 3), begin) || chance() < 0.5;
    depth_--;
    if (!stays || chance() < jumps_) {
      call.left = true;
      return false;
    }
    call.end = now_++;
    call.return_seen = send(returned({.ts = call.end, .sp = sp, .drops = drops_}, symbol, 0));
    return true;
  }

  Correlating& c_;
  std::mt19937 random_;
  double loss_, jumps_, signals_;
  std::uint64_t now_ = 1;
  std::uint32_t drops_ = 0xfffffffa;  // the count wraps
  int left_ = 0, depth_ = 0, burst_ = 0;
  std::map<std::uint64_t, TrueCall> truth_;
};

// Each call is in the trace once, or as the halves that were seen, and nothing else is.
void check(const Thread& thread, const Correlating& c, bool with_jumps) {
  std::map<std::uint64_t, std::uint64_t> by_end, by_id;
  for (const auto& [begin, call] : thread.truth())
    if (call.end) by_end[call.end] = begin;
  for (const auto& line : c.sink.calls)
    if (!line.entry_lost) by_id[line.id] = line.ts;
  std::set<std::uint64_t> entries, returns;
  std::size_t pairs = 0, possible = 0;
  for (const auto& line : c.sink.calls) {
    if (line.entry_lost) {
      REQUIRE(by_end.contains(line.ts));
      CHECK(returns.insert(by_end.at(line.ts)).second);
      CHECK_FALSE(line.has_return);
      CHECK(line.parent == 0);
      continue;
    }
    REQUIRE(thread.truth().contains(line.ts));
    const auto& truth = thread.truth().at(line.ts);
    CHECK(entries.insert(line.ts).second);
    CHECK(line.words[0] == line.ts);
    if (line.has_return) {
      pairs++;
      CHECK(line.duration == truth.end - truth.begin);
      CHECK(returns.insert(line.ts).second);
    } else {
      CHECK(line.return_lost != line.unfinished);
    }
    // A parent that is named is the true one; after a longjmp from a call with the same stack
    // pointer, it may be that call.
    if (line.parent && !with_jumps) CHECK(by_id.at(line.parent) == truth.parent);
  }
  for (const auto& [begin, truth] : thread.truth()) {
    CHECK(entries.contains(begin) == truth.entry_seen);
    CHECK(returns.contains(begin) == truth.return_seen);
    possible += truth.entry_seen && truth.return_seen;
  }
  if (!with_jumps) CHECK(pairs * 10 >= possible * 6);  // certainty must not cost too many pairs
}

}  // namespace

TEST_CASE("Whatever is lost, no duration and no parent is wrong, and every record is told once") {
  for (std::uint32_t seed = 1; seed <= 400; seed++) {
    double loss = seed % 5 * 0.08, jumps = seed % 2 * 0.1;
    CAPTURE(seed, loss, jumps);
    Correlating c;
    Thread thread(c, seed, loss, jumps);
    thread.run(200);
    c.correlator.finish();
    check(thread, c, jumps > 0);
    if (loss == 0 && jumps == 0) {
      for (const auto& line : c.sink.calls) {
        CHECK(line.has_return);
        CHECK((line.parent != 0) == (thread.truth().at(line.ts).parent != 0));
      }
    }
  }
}

TEST_CASE("With handlers on stacks of their own, every call that is seen is whole") {
  for (std::uint32_t seed = 1; seed <= 200; seed++) {
    double loss = seed % 4 * 0.08;
    CAPTURE(seed, loss);
    Correlating c;
    Thread thread(c, seed, loss, 0, 0.3);
    thread.run(200);
    c.correlator.finish();
    // A call in a handler is said to be inside a call further out, or none.
    check(thread, c, true);
    if (loss == 0)
      for (const auto& line : c.sink.calls) CHECK(line.has_return);
  }
}
