// What is known of the addresses of a copy that does not say its direction.
#include <catch2/catch_test_macros.hpp>

#include "allocating.hpp"

using namespace cudabpf;
using namespace samples;

TEST_CASE("Directions between addresses that are known") {
  Correlating c;
  alloc(c, DEVICE_AT, 4096);
  alloc(c, HOST_AT, 4096, "cuMemHostAlloc");
  CHECK(direction(c, DEVICE_AT, HOST_AT) == "HtoD inferred");
  CHECK(direction(c, HOST_AT, DEVICE_AT) == "DtoH inferred");
  CHECK(direction(c, DEVICE_AT, DEVICE_AT + 2048) == "DtoD inferred");
  CHECK(direction(c, HOST_AT, HOST_AT + 4095) == "HtoH inferred");
  CHECK(direction(c, HOST_AT, HOST_AT + 4096) == "unified");
  CHECK(direction(c, HOST_AT - 1, HOST_AT) == "unified");
  // The call itself knows better.
  c.call({}, "cuMemcpyHtoD_v2", {DEVICE_AT, DEVICE_AT, 16});
  CHECK(c.last().details.op == Op::HtoD);
  CHECK_FALSE(c.last().details.inferred_op);
}

TEST_CASE("Managed memory may be on either side") {
  Correlating c;
  c.feed(process({}, abi::CB_EXEC));
  alloc(c, DEVICE_AT, 4096, "cuMemAllocManaged");
  alloc(c, DEVICE_AT + 4096, 4096);
  CHECK(direction(c, DEVICE_AT, DEVICE_AT + 4096) == "unified");
  CHECK(direction(c, DEVICE_AT + 4096, DEVICE_AT) == "unified");
}

TEST_CASE("What was never seen allocated is ordinary memory, if all was seen") {
  SECTION("of a process that the trace has followed from its beginning") {
    Correlating c({.begin_boottime_ns = 1000});
    SECTION("a fork") { c.feed(process({}, abi::CB_FORK)); }
    SECTION("an exec") { c.feed(process({}, abi::CB_EXEC)); }
    SECTION("one that began after the trace") {
      auto start = process({}, abi::CB_START);
      start.as<abi::cb_process>().start_time = 1000;
      c.feed(start);
    }
    alloc(c, DEVICE_AT, 4096);
    CHECK(direction(c, DEVICE_AT, HOST_AT) == "HtoD inferred");
    CHECK(direction(c, HOST_AT, DEVICE_AT) == "DtoH inferred");
    // A graph may have allocated them.
    CHECK(direction(c, HOST_AT, HOST_AT + 64) == "unified");
  }
  SECTION("not of one that was there before") {
    Correlating c({.begin_boottime_ns = 1000});
    SECTION("and makes its first call") {
      auto start = process({}, abi::CB_START);
      start.as<abi::cb_process>().start_time = 999;
      c.feed(start);
    }
    SECTION("or was listed") {}
    alloc(c, DEVICE_AT, 4096);
    CHECK(direction(c, DEVICE_AT, HOST_AT) == "unified");
  }
  SECTION("not after a loss") {
    Correlating c;
    c.feed(process({}, abi::CB_EXEC));
    alloc(c, DEVICE_AT, 4096);
    c.call({.drops = 1}, "cuMemcpy", {DEVICE_AT, HOST_AT, 16});
    CHECK(c.last().details.op == Op::unified);
    c.call({.drops = 1}, "cuMemcpy", {DEVICE_AT, HOST_AT, 16});
    CHECK(c.last().details.op == Op::unified);
  }
  SECTION("not after memory came from elsewhere") {
    Correlating c;
    c.feed(process({}, abi::CB_EXEC));
    alloc(c, DEVICE_AT, 4096);
    c.call({}, "cuIpcOpenMemHandle_v2", {1, 0}, {HOST_AT});
    CHECK(direction(c, DEVICE_AT, HOST_AT) == "unified");
  }
}

TEST_CASE("Addresses that other calls return with their size are known too") {
  Correlating c;
  c.feed(process({}, abi::CB_EXEC));
  c.call({}, "cuModuleGetGlobal_v2", {1, 2, 3, 4}, {DEVICE_AT, 256}, 0, "table");
  CHECK(direction(c, DEVICE_AT + 255, HOST_AT) == "HtoD inferred");
  c.call({}, "cuLibraryGetManaged", {1, 2, 3, 4}, {DEVICE_AT, 256}, 0, "table");
  CHECK(direction(c, DEVICE_AT, HOST_AT) == "unified");
}

TEST_CASE("After a context's end nothing is sure, but what is freed was there") {
  Correlating c;
  c.feed(process({}, abi::CB_EXEC));
  alloc(c, DEVICE_AT, 4096);
  c.call({}, "cuDevicePrimaryCtxRelease_v2", {0});
  CHECK(direction(c, DEVICE_AT, HOST_AT) == "unified");
  CHECK(freed(c, DEVICE_AT) == 4096);
}

TEST_CASE("A free that has not been seen to return may have freed") {
  Correlating c;
  alloc(c, DEVICE_AT, 4096);
  alloc(c, HOST_AT, 4096, "cuMemHostAlloc");
  c.feed(entry({.ts = 10}, "cuMemFree_v2", {DEVICE_AT}));
  c.call({.ts = 20, .drops = 1}, "cuInit", {0});
  REQUIRE(c.sink.calls[2].return_lost);
  c.call({.drops = 1}, "cuMemcpy", {DEVICE_AT, HOST_AT, 16});
  CHECK(c.last().details.op == Op::unified);
}

TEST_CASE("Where frees are left out, nothing is concluded from memory that may be gone") {
  Correlating c({.coverage = {.memory = {.all = false, .frees = false}}});
  c.feed(process({}, abi::CB_EXEC));
  alloc(c, DEVICE_AT, 4096);
  alloc(c, HOST_AT, 4096, "cuMemHostAlloc");
  CHECK(direction(c, DEVICE_AT, HOST_AT) == "unified");
  CHECK(freed(c, DEVICE_AT) == 0);  // another may lie there by now
}

TEST_CASE("Where allocations are left out, what is not known is not taken for the host's") {
  Correlating c({.coverage = {.memory = {.all = false}}});
  c.feed(process({}, abi::CB_EXEC));
  alloc(c, DEVICE_AT, 4096);
  alloc(c, HOST_AT, 4096, "cuMemHostAlloc");
  CHECK(direction(c, DEVICE_AT, DEVICE_AT + (1 << 20)) == "unified");
  CHECK(direction(c, DEVICE_AT, HOST_AT) == "HtoD inferred");
  CHECK(freed(c, DEVICE_AT) == 4096);
}

TEST_CASE("After a loss a block may be another, of another size and on another side") {
  Correlating c;
  alloc(c, DEVICE_AT, 4096);
  alloc(c, HOST_AT, 4096, "cuMemHostAlloc");
  c.feed(thread_exit({.tid = 101, .drops = 0}));
  c.call({.drops = 1}, "cuInit", {0});
  c.call({.drops = 1}, "cuMemcpy", {DEVICE_AT, HOST_AT, 16});
  CHECK(c.last().details.op == Op::unified);
  c.call({.drops = 1}, "cuMemFree_v2", {DEVICE_AT});
  CHECK_FALSE(c.last().details.size);
}
