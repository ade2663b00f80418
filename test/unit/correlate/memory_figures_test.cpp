// How much is held, and what is held at most.
#include <catch2/catch_test_macros.hpp>

#include "allocating.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

struct Holding : Correlating {
  using Correlating::Correlating;
  void alloc(std::uint32_t pid, std::uint64_t ptr, std::uint64_t size,
             const char* symbol = "cuMemAlloc_v2") {
    call({.pid = pid, .tid = pid}, symbol, {1, size, 0}, {ptr});
  }
  void free(std::uint32_t pid, std::uint64_t ptr, const char* symbol = "cuMemFree_v2") {
    call({.pid = pid, .tid = pid}, symbol, {ptr});
  }
  const MemoryFigures& of(MemoryKind kind) const {
    return correlator.memory()[static_cast<std::size_t>(kind)];
  }
};

}  // namespace

TEST_CASE("Memory: what was allocated, freed and is held") {
  Holding c;
  const MemoryFigures& device = c.of(MemoryKind::device);
  SECTION("of one process") {
    c.alloc(1, 0x1000, 100);
    c.alloc(1, 0x2000, 50);
    c.free(1, 0x1000);
    c.alloc(1, 0x3000, 20);
    CHECK(device.allocations == 3);
    CHECK(device.allocated == 170);
    CHECK(device.frees == 1);
    CHECK(device.freed == 100);
    CHECK(device.held == 70);
    CHECK(device.peak == 150);
    CHECK(device.released == 0);
  }
  SECTION("a free finds what it frees by address and process") {
    c.alloc(1, 0x1000, 100);
    c.alloc(2, 0x1000, 7);
    c.free(2, 0x1000);
    c.free(2, 0x1000);  // again
    c.free(1, 0);       // legal, frees nothing
    c.free(3, 0x1000);  // of a process that is not known
    CHECK(device.frees == 1);
    CHECK(device.freed == 7);
    CHECK(device.held == 100);
  }
  SECTION("cuMemFree frees managed memory too, as what it is") {
    c.alloc(1, 0x1000, 64, "cuMemAllocManaged");
    c.free(1, 0x1000);
    CHECK(c.of(MemoryKind::managed).freed == 64);
    CHECK(c.of(MemoryKind::managed).held == 0);
    CHECK(device.frees == 0);
  }
  SECTION("VMM memory is known by its handle, which may equal an address or stand beside one") {
    c.alloc(1, 0x1000, 10);
    c.alloc(1, 0x1000, 4096, "cuMemCreate");
    c.alloc(1, 0x1001, 4096, "cuMemCreate");
    CHECK(c.of(MemoryKind::vmm).held == 8192);
    CHECK(device.held == 10);
    c.free(1, 0x1000, "cuMemRelease");
    CHECK(c.of(MemoryKind::vmm).held == 4096);
    CHECK(c.of(MemoryKind::vmm).frees == 1);
    CHECK(device.held == 10);
  }
  SECTION("registered and mapped memory was there before") {
    c.call({}, "cuMemHostRegister_v2", {HOST_AT, 64, 0});
    c.call({}, "cuMemMap", {DEVICE_AT, 4096, 0, 7, 0});
    CHECK(c.of(MemoryKind::host).allocations == 0);
    CHECK(c.of(MemoryKind::vmm).held == 0);
  }
  SECTION("failed calls change nothing") {
    c.call({.pid = 1, .tid = 1}, "cuMemAlloc_v2", {1, 100}, {}, 2);
    c.alloc(1, 0x1000, 100);
    c.call({.pid = 1, .tid = 1}, "cuMemFree_v2", {0x1000}, {}, 1);
    CHECK(device.allocations == 1);
    CHECK(device.held == 100);
  }
  SECTION("an address that is allocated again was freed unseen") {
    c.alloc(1, 0x1000, 100);
    c.alloc(1, 0x1000, 30);
    CHECK(device.held == 30);
    CHECK(device.peak == 100);
  }
  SECTION("it goes away with its process, by exit or exec, and a reused pid starts anew") {
    for (auto kind : {abi::CB_EXIT, abi::CB_EXEC, abi::CB_FORK}) {
      Holding fresh;
      fresh.alloc(1, 0x1000, 100);
      fresh.alloc(2, 0x1000, 9);
      fresh.alloc(1, 0x7, 5, "cuMemCreate");
      fresh.feed(process({.pid = 1, .tid = 1}, kind));
      CHECK(fresh.of(MemoryKind::device).held == 9);
      CHECK(fresh.of(MemoryKind::device).released == 100);
      CHECK(fresh.of(MemoryKind::device).freed == 0);
      CHECK(fresh.of(MemoryKind::vmm).released == 5);
    }
  }
}

TEST_CASE("Memory that is never freed does not take all of ours, and nothing told is wrong") {
  Limits limits;
  limits.of(Table::memory) = 100;
  Holding c({.limits = limits});
  c.feed(process({.pid = 1, .tid = 1}, abi::CB_EXEC));
  auto direction = [&](std::uint64_t dst, std::uint64_t src) {
    c.call({.pid = 1, .tid = 1}, "cuMemcpy", {dst, src, 16});
    return std::string(to_string(c.last().details.op));
  };
  for (std::uint64_t i = 0; i < 150; i++) c.alloc(1, DEVICE_AT + i * 4096, 4096);
  CHECK(c.correlator.bounds().all_left_out(Table::memory) == 50);
  CHECK(direction(DEVICE_AT, DEVICE_AT + 4096) == "DtoD");
  CHECK(direction(DEVICE_AT, DEVICE_AT + 149 * 4096) == "unified");  // it is not the host's
  CHECK(c.of(MemoryKind::device).allocations == 150);
  CHECK(c.of(MemoryKind::device).held == 100 * 4096);
  c.free(1, DEVICE_AT + 149 * 4096);
  CHECK_FALSE(c.last().details.size);
  c.free(1, DEVICE_AT);
  CHECK(c.last().details.size == 4096);
  c.alloc(1, DEVICE_AT + (1 << 30), 64);  // there is room again
  c.free(1, DEVICE_AT + (1 << 30));
  CHECK(c.last().details.size == 64);
  SECTION("another process's comes before what is one too many of this one's") {
    c.alloc(1, DEVICE_AT, 4096);
    c.alloc(2, HOST_AT, 8);
    CHECK(c.of(MemoryKind::device).held == 8);
    c.free(1, DEVICE_AT);
    CHECK_FALSE(c.last().details.size);
    CHECK(direction(DEVICE_AT + 4096, HOST_AT) == "unified");
    c.free(2, HOST_AT);
    CHECK(c.last().details.size == 8);
    CHECK(c.of(MemoryKind::device).held == 0);
  }
}
