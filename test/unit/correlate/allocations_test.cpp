#include "correlate/allocations.hpp"

#include <catch2/catch_test_macros.hpp>

#include "correlating.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint64_t DEVICE_AT = 0x7f00'0000'0000, HOST_AT = 0x7e00'0000'0000;

void alloc(Correlating& c, std::uint64_t ptr, std::uint64_t size,
           const char* symbol = "cuMemAlloc_v2") {
  c.call({}, symbol, {1, size, 0}, {ptr});
}

// The size that a free of `ptr` is said to have had; 0: none.
std::uint64_t freed(Correlating& c, std::uint64_t ptr, const char* symbol = "cuMemFree_v2",
                    int result = 0) {
  c.call({}, symbol, {ptr}, {}, result);
  return c.last().details.size.value_or(0);
}

std::string direction(Correlating& c, std::uint64_t dst, std::uint64_t src) {
  c.call({}, "cuMemcpy", {dst, src, 16});
  CHECK(c.last().details.dst == dst);
  CHECK(c.last().details.src == src);
  return std::string(to_string(c.last().details.op)) +
         (c.last().details.inferred_op ? " inferred" : "");
}

}  // namespace

namespace {

constexpr std::uint64_t CONTEXTS[] = {0xc0, 0xc1};

// Memory of two devices: at DEVICE_AT and 1 MiB after it.
struct TwoDevices : Correlating {
  TwoDevices() {
    for (int device = 0; device < 2; device++) {
      auto ordinal = static_cast<std::uint64_t>(device);
      call({}, "cuDevicePrimaryCtxRetain", {1, ordinal}, {CONTEXTS[device]});
      call({}, "cuCtxSetCurrent", {CONTEXTS[device]});
      alloc(*this, DEVICE_AT + (ordinal << 20), 4096);
    }
  }
  // "0 to 1"; empty: not known.
  std::string copied(std::uint64_t dst, std::uint64_t src,
                     const char* symbol = "cuMemcpyDtoDAsync_v2") {
    call({}, symbol, {dst, src, 16, 0});
    return ends();
  }
  std::string ends() const {
    const Details& told = last().details;
    CHECK(told.src_device.has_value() == told.dst_device.has_value());
    if (!told.src_device) return "";
    return std::to_string(*told.src_device) + " to " + std::to_string(*told.dst_device);
  }
};

constexpr std::uint64_t OTHER_AT = DEVICE_AT + (1 << 20);

}  // namespace

TEST_CASE("A copy between two GPUs tells which they are") {
  TwoDevices c;
  CHECK(c.copied(OTHER_AT, DEVICE_AT) == "0 to 1");
  CHECK(c.copied(DEVICE_AT + 4080, OTHER_AT + 1, "cuMemcpy") == "1 to 0");
  CHECK(c.last().details.op == Op::DtoD);
  CHECK(c.copied(DEVICE_AT, DEVICE_AT + 64).empty());
  CHECK(c.copied(OTHER_AT, HOST_AT, "cuMemcpyHtoD_v2").empty());
  c.call({}, "cuMemcpyPeer", {OTHER_AT, CONTEXTS[1], OTHER_AT + 64, CONTEXTS[1], 16});
  CHECK(c.ends() == "1 to 1");  // the call itself says so
  c.call({}, "cuMemGetAddressRange_v2", {1, 1, DEVICE_AT}, {DEVICE_AT, 4096});
  CHECK(c.copied(OTHER_AT, DEVICE_AT) == "0 to 1");
}

TEST_CASE("All of a copy lies where it is said to") {
  TwoDevices c;
  auto copied = [&](std::uint64_t src, std::uint64_t size) {
    c.call({}, "cuMemcpyDtoD_v2", {OTHER_AT, src, size});
    return c.ends();
  };
  c.call({}, "cuCtxSetCurrent", {CONTEXTS[0]});
  alloc(c, DEVICE_AT + 4096, 4096);  // adjacent to what is there, and on the same GPU
  c.call({}, "cuCtxSetCurrent", {CONTEXTS[1]});
  alloc(c, DEVICE_AT + 8192, 4096);  // and this is not
  alloc(c, OTHER_AT, 1 << 16);
  CHECK(copied(DEVICE_AT, 8192) == "0 to 1");
  CHECK(copied(DEVICE_AT + 1, 8192).empty());
  CHECK(copied(DEVICE_AT + 8191, 1) == "0 to 1");
  CHECK(copied(DEVICE_AT + 8192, 4097).empty());
}

TEST_CASE("Where calls that allocate or free are left out, no ends are told") {
  CHECK(Allocations::follows(*find_function("cuMemFreeAsync")));
  CHECK(Allocations::follows(*find_function("cuDevicePrimaryCtxReset_v2")));
  CHECK(Allocations::follows(*find_function("cuMemImportFromShareableHandle")));
  CHECK_FALSE(Allocations::follows(*find_function("cuMemcpy")));
  for (const Function& function : cuda_functions())
    CHECK((!Allocations::follows(function) || function.profile <= Profile::default_));
}

TEST_CASE("Where memory may be gone, or be anywhere, no GPU is told") {
  TwoDevices c;
  SECTION("freed") { c.call({}, "cuMemFree_v2", {DEVICE_AT}); }
  SECTION("of a context that is destroyed") { c.call({}, "cuCtxDestroy_v2", {CONTEXTS[0]}); }
  SECTION("managed") { alloc(c, DEVICE_AT, 4096, "cuMemAllocManaged"); }
  SECTION("of a pool") { c.call({}, "cuMemAllocFromPoolAsync", {1, 4096, 0x9, 0}, {DEVICE_AT}); }
  SECTION("calls are missing") { c.feed(entry({.drops = 1}, "cuCtxSynchronize")); }
  SECTION("a thread ended after its last calls were lost") {
    c.call({.tid = 101}, "cuCtxSynchronize");
    c.feed(thread_exit({.tid = 101, .drops = 1}));
  }
  SECTION("what a call returned was lost") {
    c.feed(entry({}, "cuMemAlloc_v2", {1, 64}));
    c.feed(returned({.ts = 100, .flags = abi::CB_OUT_LOST}, "cuMemAlloc_v2"));
  }
  SECTION("another process's, at that address") {
    c.call({}, "cuIpcOpenMemHandle_v2", {1, 0}, {DEVICE_AT});
  }
  CHECK(c.copied(OTHER_AT, DEVICE_AT).empty());
}

TEST_CASE("Mapped memory lies where its physical memory does") {
  TwoDevices c;
  constexpr std::uint64_t HANDLE = 0x77, MAPPED_AT = DEVICE_AT + (2 << 20);
  constexpr std::uint64_t PINNED_ON_0[] = {1, 1, 0, 0};  // CUmemAllocationProp
  auto map = [&] { c.call({}, "cuMemMap", {MAPPED_AT, 4096, 0, HANDLE, 0}); };
  c.feed(entry({}, "cuMemCreate", {1, 4096, 2, 0}, std::as_bytes(std::span(PINNED_ON_0))));
  c.feed(returned({.ts = 1100}, "cuMemCreate", 0, {HANDLE}));
  SECTION("known") {
    map();
    CHECK(c.copied(OTHER_AT, MAPPED_AT) == "0 to 1");
    c.call({}, "cuMemRelease", {HANDLE});
    CHECK(c.copied(OTHER_AT, MAPPED_AT) == "0 to 1");  // it is held as long as it is mapped
    c.call({}, "cuMemUnmap", {MAPPED_AT, 4096});
    CHECK(c.copied(OTHER_AT, MAPPED_AT).empty());
  }
  SECTION("of a handle that is another's by now") {
    c.call({}, "cuMemImportFromShareableHandle", {1, 5, 1}, {HANDLE});
    map();
    CHECK(c.copied(OTHER_AT, MAPPED_AT).empty());
  }
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
