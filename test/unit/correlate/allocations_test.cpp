#include "correlate/learners/allocations.hpp"

#include <catch2/catch_test_macros.hpp>

#include "allocating.hpp"

using namespace cudabpf;
using namespace samples;

TEST_CASE("Where calls that allocate or free are left out, no ends are reported") {
  CHECK(Allocations::follows(*find_function("cuMemFreeAsync")));
  CHECK(Allocations::follows(*find_function("cuDevicePrimaryCtxReset_v2")));
  CHECK(Allocations::follows(*find_function("cuMemImportFromShareableHandle")));
  CHECK_FALSE(Allocations::follows(*find_function("cuMemcpy")));
  for (const Function& function : cuda_functions())
    CHECK((!Allocations::follows(function) || function.profile <= Profile::default_));
}

TEST_CASE("A free has the size of what it frees") {
  Correlating c;
  alloc(c, DEVICE_AT, 4096);
  alloc(c, DEVICE_AT + 4096, 100, "cuMemAllocAsync");
  alloc(c, HOST_AT, 64, "cuMemHostAlloc");
  CHECK(freed(c, DEVICE_AT) == 4096);
  CHECK(freed(c, DEVICE_AT) == 0);  // once
  CHECK(freed(c, DEVICE_AT + 4096, "cuMemFreeAsync") == 100);
  CHECK(freed(c, HOST_AT, "cuMemFreeHost") == 64);
  CHECK(freed(c, DEVICE_AT + 9999) == 0);
}

TEST_CASE("A free that returns late has freed what was there when it began") {
  Correlating c;
  const Head other{.tid = 101};
  alloc(c, DEVICE_AT, 4096);
  c.feed(entry({}, "cuMemFree_v2", {DEVICE_AT}));
  c.call(other, "cuMemAlloc_v2", {1, 100, 0}, {DEVICE_AT});
  c.feed(returned({.ts = 900}, "cuMemFree_v2"));
  CHECK(c.last().details.size == 4096u);
  CHECK(freed(c, DEVICE_AT) == 100);
  // One that began before any thread had got the address freed something that was not seen.
  c.feed(entry({}, "cuMemFree_v2", {DEVICE_AT}));
  c.call(other, "cuMemAlloc_v2", {1, 200, 0}, {DEVICE_AT});
  c.feed(returned({.ts = 900}, "cuMemFree_v2"));
  CHECK_FALSE(c.last().details.size);
  CHECK(freed(c, DEVICE_AT) == 200);
}

TEST_CASE("A free that failed freed nothing, and one of nothing is legal") {
  Correlating c;
  alloc(c, DEVICE_AT, 4096);
  CHECK(freed(c, DEVICE_AT, "cuMemFree_v2", 201) == 0);
  CHECK(freed(c, 0) == 0);
  CHECK(freed(c, DEVICE_AT + 8) == 0);  // an address inside is not an allocation's
  CHECK(freed(c, DEVICE_AT) == 4096);
}

TEST_CASE("An allocation that failed holds nothing") {
  Correlating c;
  c.call({}, "cuMemAlloc_v2", {1, 4096}, {}, 2);
  c.call({}, "cuMemAlloc_v2", {1, 4096}, {DEVICE_AT}, 2);
  CHECK(freed(c, DEVICE_AT) == 0);
}

TEST_CASE("Processes have memory of their own, until they exit") {
  Correlating c;
  alloc(c, DEVICE_AT, 4096);
  c.call({.pid = 200, .tid = 200}, "cuMemFree_v2", {DEVICE_AT});
  CHECK_FALSE(c.last().details.size);
  c.feed(process({}, abi::CB_EXIT));
  CHECK(freed(c, DEVICE_AT) == 0);
}

TEST_CASE("Host memory that is registered, and unregistered") {
  Correlating c;
  c.call({}, "cuMemHostRegister_v2", {HOST_AT, 64, 0});
  CHECK(freed(c, HOST_AT, "cuMemHostUnregister") == 64);
}

TEST_CASE("An unmap may end several mappings at once") {
  Correlating c;
  for (std::uint64_t i = 0; i < 4; i++)
    c.call({}, "cuMemMap", {DEVICE_AT + i * 4096, 4096, 0, 7, 0});
  c.call({}, "cuMemUnmap", {DEVICE_AT + 4096, 8192});
  CHECK(c.last().details.size == 8192);
  alloc(c, HOST_AT, 64, "cuMemHostAlloc");
  CHECK(direction(c, DEVICE_AT, HOST_AT) == "HtoD inferred");
  CHECK(direction(c, DEVICE_AT + 4096, HOST_AT) == "unified");
  CHECK(direction(c, DEVICE_AT + 8192, HOST_AT) == "unified");
  CHECK(direction(c, DEVICE_AT + 12288, HOST_AT) == "HtoD inferred");
}

TEST_CASE("A new allocation shows that what lay there is gone") {
  Correlating c;
  alloc(c, DEVICE_AT + 4096, 4096);
  alloc(c, DEVICE_AT, 65536);  // that one's free was not seen
  CHECK(freed(c, DEVICE_AT + 4096) == 0);
  alloc(c, DEVICE_AT + 512, 512);  // and this one's
  CHECK(freed(c, DEVICE_AT) == 0);
  CHECK(freed(c, DEVICE_AT + 512) == 512);
  // If an allocation's entry was lost, its size is not known, but its address is.
  alloc(c, DEVICE_AT, 4096);
  c.feed(returned({.drops = 1}, "cuMemAlloc_v2", 0, {DEVICE_AT}));
  c.call({.drops = 1}, "cuMemFree_v2", {DEVICE_AT});
  CHECK_FALSE(c.last().details.size);
}

TEST_CASE("Memory that is never freed does not take all of ours, and nothing reported is wrong") {
  Limits limits;
  limits.of(Kept::memory) = 100;
  Correlating c({.limits = limits});
  auto alloc = [&](std::uint32_t pid, std::uint64_t ptr, std::uint64_t size) {
    c.call({.pid = pid, .tid = pid}, "cuMemAlloc_v2", {1, size}, {ptr});
  };
  auto freed = [&](std::uint32_t pid, std::uint64_t ptr) {
    c.call({.pid = pid, .tid = pid}, "cuMemFree_v2", {ptr});
    return c.last().details.size;
  };
  auto direction = [&](std::uint64_t dst, std::uint64_t src) {
    c.call({.pid = 1, .tid = 1}, "cuMemcpy", {dst, src, 16});
    return std::string(to_string(c.last().details.op));
  };
  c.feed(process({.pid = 1, .tid = 1}, abi::CB_EXEC));
  for (std::uint64_t i = 0; i < 150; i++) alloc(1, DEVICE_AT + i * 4096, 4096);
  CHECK(c.correlator.bounds().all_left_out(Kept::memory) == 50);
  CHECK(direction(DEVICE_AT, DEVICE_AT + 4096) == "DtoD");
  CHECK(direction(DEVICE_AT, DEVICE_AT + 149 * 4096) == "unified");  // it is not the host's
  CHECK_FALSE(freed(1, DEVICE_AT + 149 * 4096));
  CHECK(freed(1, DEVICE_AT) == 4096);
  alloc(1, DEVICE_AT + (1 << 30), 64);  // there is space again
  CHECK(freed(1, DEVICE_AT + (1 << 30)) == 64);
  SECTION("another process's comes before what is one too many of this one's") {
    alloc(1, DEVICE_AT, 4096);
    alloc(2, HOST_AT, 8);
    CHECK_FALSE(freed(1, DEVICE_AT));
    CHECK(direction(DEVICE_AT + 4096, HOST_AT) == "unified");
    CHECK(freed(2, HOST_AT) == 8);
  }
}
